// The broker's side of a TLS connection, over memory: a test carries the bytes itself, in whatever pieces.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "daemon/wire/tls_stream.h"
#include "proto/bytes.h"
#include "test/support/certificates.h"
#include "test/support/sockets.h"

namespace bellhop::test {

class TlsPeer {
 public:
  explicit TlsPeer(const Identity& identity, int version = 0) : context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate(context_, identity.certificate.get());
    SSL_CTX_use_PrivateKey(context_, identity.key.get());
    if (version != 0) SSL_CTX_set_max_proto_version(context_, version);
  }
  ~TlsPeer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  // A certificate that this authority issued, or none of this.
  void want_certificate_of(const Identity& authority) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), authority.certificate.get());
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }

  // What the client sent.
  void hears(Bytes bytes) {
    SSL* const ssl = open();
    BIO_write(SSL_get_rbio(ssl), bytes.data(), static_cast<int>(bytes.size()));
    if (SSL_is_init_finished(ssl) == 0) SSL_do_handshake(ssl);
    char plain[4096];
    int got;
    while (SSL_is_init_finished(ssl) != 0 && (got = SSL_read(ssl, plain, sizeof plain)) > 0)
      heard.append(plain, static_cast<size_t>(got));
    if ((SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0) heard_end = true;
  }
  void says(std::string_view text) { SSL_write(open(), text.data(), static_cast<int>(text.size())); }
  void says_end() { SSL_shutdown(open()); }
  void says_new_keys() {
    SSL_key_update(open(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(open());
  }
  // What is to be carried to the client.
  Buffer output() {
    Buffer out(BIO_ctrl_pending(SSL_get_wbio(open())));
    if (!out.empty()) BIO_read(SSL_get_wbio(ssl_), out.data(), static_cast<int>(out.size()));
    return out;
  }
  std::string asked_name() {
    const char* const name = SSL_get_servername(open(), TLSEXT_NAMETYPE_host_name);
    return name != nullptr ? name : "";
  }

  std::string heard;
  bool heard_end = false;

 private:
  SSL* open() {
    if (ssl_ == nullptr) {
      ssl_ = SSL_new(context_);
      SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
      SSL_set_accept_state(ssl_);
    }
    return ssl_;
  }
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
};

// A stream on one end of a pair of sockets, and the peer that a test lets hear and speak at the other.
struct TlsRig {
  Identity authority = make_authority();
  Identity identity;
  config::Tls tls;
  config::BrokerUrl url;
  std::shared_ptr<const TlsContext> context;
  SocketPair pair;
  std::unique_ptr<TlsStream> stream;
  std::unique_ptr<TlsPeer> peer;

  explicit TlsRig(const Wanted& wanted = {}, const std::string& host = "localhost", int version = 0)
      : identity(make_identity(wanted, &authority)), peer(std::make_unique<TlsPeer>(identity, version)) {
    tls.ca.text = authority.cert_pem();
    url.transport = config::Transport::tls;
    url.host = host;
  }
  // With what `tls` and `url` say by now.
  void open() {
    auto opened = TlsContext::open(tls);
    if (!opened) std::abort();
    context = std::move(opened.value());
    stream = std::make_unique<TlsStream>(context, url);
  }
  TlsStream::Step step() { return stream->handshake(pair.a); }
  // What the client sent so far, carried to the peer.
  void carry_up() {
    while (true) {
      const Buffer bytes = read_some(pair.b, 1 << 16);
      if (bytes.empty()) return;
      peer->hears(bytes);
    }
  }
  // As much as the socket takes.
  size_t give(Bytes bytes) {
    const ssize_t sent = ::send(pair.b, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent > 0 ? static_cast<size_t>(sent) : 0;
  }
  // The whole handshake, one flight after the other.
  TlsStream::Step shake_hands() {
    open();
    for (int flight = 0; flight < 8; ++flight) {
      const TlsStream::Step step = this->step();
      carry_up();
      give(peer->output());
      if (step != TlsStream::Step::waiting) return step;
    }
    return TlsStream::Step::waiting;
  }
  // What is there, read with a buffer of so many bytes. Sets `outcome` to what the last receive said.
  std::string receive_all(size_t bytes_max = 4096, ssize_t* outcome = nullptr) {
    std::string all;
    Buffer buffer(bytes_max);
    ssize_t got;
    while ((got = stream->receive(pair.a, buffer.data(), buffer.size())) > 0)
      all.append(reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(got));
    if (outcome != nullptr) *outcome = got;
    return all;
  }
};

}  // namespace bellhop::test
