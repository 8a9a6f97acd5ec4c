// What all TLS connections to the broker share: CAs, the client certificate, protocol versions. Made once for
// a configuration, and only for an amqps:// URL, because OpenSSL and the system's CAs take megabytes. It
// reads no file later. Immutable: any thread may use it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "config/config.h"
#include "proto/result.h"

struct ssl_ctx_st;     // OpenSSL's
struct bio_method_st;  // OpenSSL's

namespace bellhop {

class TlsContext {
 public:
  // Error: OpenSSL refuses a file or a version, with its words.
  static Result<std::shared_ptr<const TlsContext>> open(const config::Tls& tls);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The name that bellhop asks for (SNI) and that the broker's certificate must have.
  const std::string& name_for(const config::BrokerUrl& url) const {
    return tls_.server_name.empty() ? url.host : tls_.server_name;
  }
  bool verifies() const { return tls_.verify; }
  bool has_certificate() const { return !tls_.cert.text.empty(); }

  ssl_ctx_st* ssl_context() const { return context_; }
  // How an SSL object reaches its TlsStream's buffers.
  const bio_method_st* buffers() const { return buffers_; }

 private:
  explicit TlsContext(config::Tls tls) : tls_(std::move(tls)) {}
  Result<void> fill();

  const config::Tls tls_;
  ssl_ctx_st* context_ = nullptr;
  bio_method_st* buffers_ = nullptr;
};

}  // namespace bellhop
