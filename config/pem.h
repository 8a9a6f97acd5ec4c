// Reads PEM texts with OpenSSL. A key with a passphrase counts as none: OpenSSL's own way would ask for it at
// the terminal.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace bellhop::config {

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using PemSource = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreePem>;

inline int no_passphrase(char*, int, int, void*) {
  return -1;
}

// `text` must outlive it.
inline PemSource pem_source(const std::string& text) {
  return PemSource(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Null: there is no other, or it is damaged; OpenSSL's error queue says which.
inline Certificate next_certificate(const PemSource& source) {
  return Certificate(PEM_read_bio_X509(source.get(), nullptr, no_passphrase, nullptr));
}

// Null: there is none, or it has a passphrase.
inline PrivateKey private_key(const std::string& text) {
  return PrivateKey(PEM_read_bio_PrivateKey(pem_source(text).get(), nullptr, no_passphrase, nullptr));
}

}  // namespace bellhop::config
