// The door: every configured listener, bound and accepting on the main loop. Accepted descriptors are handed
// on raw, because a libuv handle cannot change loops and each session has a loop of its own.
#pragma once

#include <sys/types.h>
#include <uv.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/door/amqp/session/accepted.h"
#include "daemon/door/inherited_sockets.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class Listener {
 public:
  using OnAccept = std::function<void(Accepted)>;

  // Binds and listens on all, or on none: the error names the one that failed and why. An entry that
  // `inherited` has a socket for takes that, and never touches its file. `listens` must outlive the listener,
  // or its next use().
  static Result<std::unique_ptr<Listener>> open(uv_loop_t* loop, const std::vector<config::Listen>& listens,
                                                InheritedSockets& inherited, OnAccept on_accept);
  // Closes. The loop has to run once more to let libuv go of its handles.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // From here on these say who may connect. Precondition: the same places in the same order.
  void use(const std::vector<config::Listen>& listens);
  // Stops accepting, and removes the socket files that are still ours. Again is harmless.
  void close();
  // Where it listens, in the order of the configuration, with the real port: `unix:/run/x.sock`,
  // `tcp:127.0.0.1:40001`.
  std::vector<std::string> addresses() const;

 private:
  struct Socket;  // one listening socket; outlives the listener until libuv lets go
  Listener(uv_loop_t* loop, OnAccept on_accept);
  static void on_readable(uv_poll_t* poll, int status, int events);
  static void on_pause_over(uv_timer_t* timer);
  static void accept_some(Socket& socket);
  void refuse_one_or_pause(Socket& socket);

  uv_loop_t* loop_;
  OnAccept on_accept_;
  std::vector<Socket*> sockets_;
  FileDescriptor spare_;  // given up for a moment when descriptors run out, see refuse_one_or_pause
};

}  // namespace bellhop
