#include "daemon/wire/tls_context.h"

#include <dirent.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cstdlib>

#include "config/pem.h"
#include "daemon/wire/tls_errors.h"
#include "daemon/wire/tls_stream.h"

namespace bellhop {
namespace {

void add_cas(X509_STORE* store, const std::string& pem) {
  const config::PemSource source = config::pem_source(pem);
  while (const config::Certificate certificate = config::next_certificate(source))
    X509_STORE_add_cert(store, certificate.get());
}

// The system's CAs, or those that SSL_CERT_FILE and SSL_CERT_DIR name, all of them now: OpenSSL's own way
// would read a directory's files in the middle of a handshake.
bool add_system_cas(X509_STORE* store) {
  const auto add_file = [store](const std::string& path) {
    return ::access(path.c_str(), R_OK) == 0 && X509_STORE_load_file(store, path.c_str()) == 1;
  };
  bool any = false;
  const char* const own_file = std::getenv(X509_get_default_cert_file_env());
  const char* const own_directory = std::getenv(X509_get_default_cert_dir_env());
  if (own_file != nullptr) any = add_file(own_file);
  if (own_file == nullptr && own_directory == nullptr) {
    for (const char* const file : {X509_get_default_cert_file(), "/etc/ssl/certs/ca-certificates.crt",
                                   "/etc/pki/tls/certs/ca-bundle.crt"}) {
      if (add_file(file)) return true;
    }
  }
  if (own_file != nullptr && own_directory == nullptr) return any;
  const std::string path = own_directory != nullptr ? own_directory : X509_get_default_cert_dir();
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  while (const dirent* const entry = directory != nullptr ? ::readdir(directory.get()) : nullptr) {
    if (entry->d_name[0] != '.') any |= add_file(path + "/" + entry->d_name);
  }
  return any;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::open(const config::Tls& tls) {
  std::shared_ptr<TlsContext> made(new TlsContext(tls));
  Result<void> filled = made->fill();
  ERR_clear_error();
  if (!filled) return Error{filled.error()};
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
  BIO_meth_free(buffers_);
}

Result<void> TlsContext::fill() {
  context_ = SSL_CTX_new(TLS_client_method());
  buffers_ = TlsStream::make_buffers();
  if (context_ == nullptr || buffers_ == nullptr) return Error{"TLS cannot be set up: out of memory"};
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  // An idle session's stream holds no buffers.
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context_, tls_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, &TlsStream::on_verified);
  if (tls_.verify) {
    X509_STORE* const store = SSL_CTX_get_cert_store(context_);
    if (!tls_.ca.text.empty()) {
      add_cas(store, tls_.ca.text);
    } else if (!add_system_cas(store)) {
      return Error{
          "the system has no readable store of CAs, which an amqps:// URL without broker.tls.ca needs "
          "(on Debian it is the package ca-certificates)"};
    }
  }
  if (tls_.cert.text.empty()) return {};
  const config::PemSource chain = config::pem_source(tls_.cert.text);
  const config::Certificate own = config::next_certificate(chain);
  const config::PrivateKey key = config::private_key(tls_.key.text);
  ERR_clear_error();
  if (own == nullptr || SSL_CTX_use_certificate(context_, own.get()) != 1 || key == nullptr ||
      SSL_CTX_use_PrivateKey(context_, key.get()) != 1)
    return Error{"broker.tls.cert and broker.tls.key cannot be used: " + openssl_reason()};
  while (const config::Certificate issuer = config::next_certificate(chain))
    SSL_CTX_add1_chain_cert(context_, issuer.get());
  return {};
}

}  // namespace bellhop
