// What went wrong with a TLS connection, as a sentence for an operator.
#pragma once

#include <openssl/x509.h>

#include <string>

#include "proto/bytes.h"

namespace bellhop {

// Why a certificate of the broker's was refused. `name` is what it should be for.
std::string verify_failure(X509_STORE_CTX* checked, const std::string& name);

// Why a handshake or a read failed, from this thread's error queue, which is emptied. `answer`: the first
// bytes that the peer sent; `in_handshake`: nothing but these tells what it speaks.
std::string tls_failure(Bytes answer, bool in_handshake, bool has_certificate);

// The last entry of this thread's error queue, as OpenSSL says it.
std::string openssl_reason();

}  // namespace bellhop
