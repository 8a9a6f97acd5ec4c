// Upward: the frames of the client for its channels. Opens channels, keeps the books on their closes, and
// gives publishes to the publisher and every other method to the releaser.
//
// One thread (the session's). Hot path.
#pragma once

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Upward {
 public:
  explicit Upward(SessionCore& core) : core_(core) {}

  // A frame for a channel (not 0) of an open connection. False: it has to wait for a transfer to end, and is
  // to be given again.
  bool on_frame(const proto::Frame& frame);

 private:
  bool on_channel_frame(Channel& channel, const proto::Frame& frame);

  SessionCore& core_;
};

}  // namespace bellhop
