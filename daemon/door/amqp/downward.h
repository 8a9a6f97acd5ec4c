// Downward: the frames of the broker for the client's channels. Keeps the books on consumers, closes and what
// is awaited, relays what needs nothing, and gives contents to the deliverer, confirms to the outcomes.
//
// One thread (the session's). Hot path.
#pragma once

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Downward {
 public:
  explicit Downward(SessionCore& core) : core_(core) {}

  // A frame for a client channel (not 0, not the private channel). False: the broker broke the protocol.
  bool on_frame(Channel& channel, const proto::Frame& frame);

 private:
  bool on_method(Channel& channel, const proto::Frame& frame);
  void on_close(Channel& channel, const proto::Frame& frame);
  void on_close_ok(Channel& channel, const proto::Frame& frame);
  bool end_consumer(Channel& channel, const proto::Frame& frame, bool asked);
  void answer(Channel& channel, const proto::Frame& frame);

  SessionCore& core_;
};

}  // namespace bellhop
