// TLS for rabbitmq-c, which has a TLS of its own that verifies less (no IP addresses, no name but the host's)
// and tells nothing of what went wrong: it gets one end of a pair of sockets, and a thread carries between
// the other end and the TLS stream.
//
//     rabbitmq-c ── plain bytes ── socket pair ── bridge's thread ── TlsStream ── broker
#pragma once

#include <memory>
#include <thread>

#include "daemon/ops/file_descriptor.h"
#include "daemon/wire/tls_stream.h"
#include "proto/result.h"

namespace bellhop {

class TlsBridge {
 public:
  // Takes both. `broker` is non-blocking, the handshake is done.
  static Result<std::unique_ptr<TlsBridge>> open(FileDescriptor broker, std::unique_ptr<TlsStream> tls);
  // Ends the connection, once what was sent before is out or the broker does not take it for a moment.
  ~TlsBridge();
  TlsBridge(const TlsBridge&) = delete;
  TlsBridge& operator=(const TlsBridge&) = delete;

  // The end for rabbitmq-c, non-blocking: once, at any time before the bridge goes. Its end
  // is the bridge's end, and the broker's end is its.
  FileDescriptor take_plain_end();

 private:
  TlsBridge(FileDescriptor broker, std::unique_ptr<TlsStream> tls)
      : broker_(std::move(broker)), tls_(std::move(tls)) {}
  void carry();
  bool carry_up();
  bool carry_down();

  FileDescriptor broker_, near_, far_;  // far: rabbitmq-c's
  std::unique_ptr<TlsStream> tls_;
  Outbox up_, down_;
  bool near_ended_ = false;
  bool near_hung_up_ = false;  // what it said before may still be to be read
  std::thread thread_;
};

}  // namespace bellhop
