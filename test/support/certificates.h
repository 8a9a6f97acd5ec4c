// Certificates for tests, made in memory: an authority, and what it issues. EC keys, which take no time.
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace bellhop::test {

struct OpenSslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

// A certificate and its key.
struct Identity {
  std::unique_ptr<X509, OpenSslFree> certificate;
  std::unique_ptr<EVP_PKEY, OpenSslFree> key;

  std::string cert_pem() const {
    return pem([this](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
  }
  std::string key_pem(const char* passphrase = nullptr) const {
    return pem([this, passphrase](BIO* out) {
      return PEM_write_bio_PKCS8PrivateKey(out, key.get(),
                                           passphrase == nullptr ? nullptr : EVP_aes_128_cbc(), nullptr, 0,
                                           nullptr, const_cast<char*>(passphrase));
    });
  }

 private:
  template <typename Write>
  static std::string pem(Write write) {
    const std::unique_ptr<BIO, OpenSslFree> out(BIO_new(BIO_s_mem()));
    if (write(out.get()) != 1) std::abort();
    char* data = nullptr;
    const long size = BIO_get_mem_data(out.get(), &data);
    return {data, static_cast<size_t>(size)};
  }
};

// What a certificate says. `names` as in "DNS:localhost,IP:127.0.0.1"; the validity is in seconds from now.
struct Wanted {
  std::string common_name = "broker";
  std::string names = "DNS:localhost,IP:127.0.0.1";
  long begins_s = -3600, ends_s = 3600;
  bool is_authority = false;
};

// Signed by `issuer`, or by itself.
inline Identity make_identity(const Wanted& wanted, const Identity* issuer = nullptr) {
  Identity out;
  out.key.reset(EVP_EC_gen("P-256"));
  out.certificate.reset(X509_new());
  X509* const made = out.certificate.get();
  X509_set_version(made, 2);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made), wanted.begins_s);
  X509_gmtime_adj(X509_getm_notAfter(made), wanted.ends_s);
  X509_set_pubkey(made, out.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(wanted.common_name.c_str()), -1, -1, 0);
  X509* const signer = issuer != nullptr ? issuer->certificate.get() : made;
  X509_set_issuer_name(made, X509_get_subject_name(signer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer, made, nullptr, nullptr, 0);
  const auto extend = [made, &context](int kind, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    if (extension == nullptr || X509_add_ext(made, extension, -1) != 1) std::abort();
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, wanted.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!wanted.names.empty() && !wanted.is_authority) extend(NID_subject_alt_name, wanted.names);
  if (X509_sign(made, issuer != nullptr ? issuer->key.get() : out.key.get(), EVP_sha256()) == 0) std::abort();
  return out;
}

inline Identity make_authority(const std::string& name = "test authority") {
  Wanted wanted;
  wanted.common_name = name;
  wanted.is_authority = true;
  return make_identity(wanted);
}

}  // namespace bellhop::test
