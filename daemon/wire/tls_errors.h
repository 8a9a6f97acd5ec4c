// Says to an operator, in a sentence, what went wrong with a TLS connection.
#pragma once

#include <openssl/x509.h>

#include <string>

#include "proto/bytes.h"

namespace bellhop {

// Why the broker's certificate was refused. `name`: the name that it should have.
std::string verify_failure(X509_STORE_CTX* checked, const std::string& name);

// Why a handshake or a read failed. Empties this thread's error queue. `answer`: the first bytes that the
// peer sent; `in_handshake`: they alone tell which protocol it speaks.
std::string tls_failure(Bytes answer, bool in_handshake, bool has_certificate);

// The last entry of this thread's error queue, as OpenSSL says it.
std::string openssl_reason();

}  // namespace bellhop
