// One connection's TLS, as the client, between a non-blocking socket and a Link. It never waits, and it
// touches the socket only in calls that get the descriptor.
//
//     socket ── recv ──► in_ ── SSL_read ──► the caller's buffer
//     Outbox ── SSL_write, whole records ──► out_ ── one send a batch ──► socket
//
// It encrypts more only once out_ is empty. So what waits for a full socket waits in the Outbox, where it is
// counted. One thread at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "daemon/wire/outbox.h"
#include "daemon/wire/tls_context.h"
#include "proto/bytes.h"

struct ssl_st;             // OpenSSL's
struct x509_store_ctx_st;  // OpenSSL's

namespace bellhop {

class TlsStream {
 public:
  // A connection to the broker of `url`.
  TlsStream(std::shared_ptr<const TlsContext> context, const config::BrokerUrl& url);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  enum class Step { done, waiting, failed };
  // Goes as far as it can without waiting. `waiting`: call again when the socket is readable, or writable if
  // has_unsent(). `failed`: error() says why, and the peer was told.
  Step handshake(int fd);

  // As recv: a number of bytes; 0 for the end (close_notify, or the socket's own); -1 with errno. EPROTO: TLS
  // itself broke, and error() says how.
  ssize_t receive(int fd, uint8_t* to, size_t bytes_max);
  // receive() has bytes or an end that no event of the socket will announce.
  bool has_unread() const;

  // As Outbox::flush. 0 or more: bytes of ciphertext that the socket took; has_unsent() and the outbox say
  // whether more waits.
  ssize_t flush(int fd, Outbox& outbox);
  bool has_unsent() const { return sent_ < out_.size(); }

  // Sends close_notify, as far as the socket takes it at once. Send nothing afterwards.
  void end(int fd);

  // Frees buffers that hold nothing.
  void release_idle();

  const std::string& error() const { return error_; }

  // For the context.
  static bio_method_st* make_buffers();
  static int on_verified(int good, x509_store_ctx_st* checked);

 private:
  struct Callbacks;
  void fail();
  ssize_t fill(int fd, size_t bytes_max);
  ssize_t send(int fd);
  bool encrypt(Outbox& outbox);
  bool write_record(Bytes plain);

  const std::shared_ptr<const TlsContext> context_;
  const std::string name_;
  ssl_st* ssl_ = nullptr;
  std::unique_ptr<uint8_t[]> in_;  // ciphertext that was received
  size_t in_begin_ = 0, in_end_ = 0;
  Buffer out_;  // ciphertext to be sent, from sent_ on
  size_t sent_ = 0;
  uint8_t answer_[4] = {};  // what the peer sent first
  size_t answer_bytes_ = 0;
  bool peer_ended_ = false;
  std::string error_, refused_certificate_;
};

}  // namespace bellhop
