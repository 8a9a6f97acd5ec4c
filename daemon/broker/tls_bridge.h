// TLS for rabbitmq-c. Its own TLS verifies less (no IP addresses, no name but the host's) and does not say
// what went wrong. So it gets one end of a pair of sockets, and a thread carries between the other end and a
// TlsStream.
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
  // Takes both. `broker` is non-blocking, and its handshake is done. Errors: no sockets, no thread.
  static Result<std::unique_ptr<TlsBridge>> open(FileDescriptor broker, std::unique_ptr<TlsStream> tls);
  // Ends the connection once everything sent before is out, or once the broker takes nothing for a moment.
  // Blocks meanwhile.
  ~TlsBridge();
  TlsBridge(const TlsBridge&) = delete;
  TlsBridge& operator=(const TlsBridge&) = delete;

  // The end for rabbitmq-c, non-blocking. Call it once, before the bridge goes. When this end closes the
  // bridge ends, and when the broker ends this end does.
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
