// TLS for rabbitmq-c, which has a TLS of its own that verifies less (no IP addresses, no name but the host's)
// and tells nothing of what went wrong: it gets one end of a pair of sockets, and a thread carries between
// the other end and the TLS stream.
//
//     rabbitmq-c ── plain bytes ── socket pair ── bridge's thread ── TlsStream ── broker
#pragma once

#include <memory>
#include <thread>

#include "daemon/wire/tls_stream.h"
#include "proto/result.h"

namespace bellhop {

class TlsBridge {
 public:
  // Takes both. `broker_fd` is non-blocking, the handshake is done.
  static Result<std::unique_ptr<TlsBridge>> open(int broker_fd, std::unique_ptr<TlsStream> tls);
  // Ends the connection, once what was sent before is out or the broker does not take it for a moment.
  ~TlsBridge();
  TlsBridge(const TlsBridge&) = delete;
  TlsBridge& operator=(const TlsBridge&) = delete;

  // The end for rabbitmq-c, non-blocking and its to close: once, at any time before the bridge goes. Its end
  // is the bridge's end, and the broker's end is its.
  int take_plain_fd();

 private:
  TlsBridge(int broker_fd, std::unique_ptr<TlsStream> tls) : broker_fd_(broker_fd), tls_(std::move(tls)) {}
  void carry();
  bool carry_up();
  bool carry_down();

  int broker_fd_, near_fd_ = -1, far_fd_ = -1;  // far: rabbitmq-c's
  std::unique_ptr<TlsStream> tls_;
  Outbox up_, down_;
  bool near_ended_ = false;
  bool near_hung_up_ = false;  // what it said before may still be to be read
  std::thread thread_;
};

}  // namespace bellhop
