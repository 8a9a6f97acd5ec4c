// BrokerWriter: where frames for the broker are written. One thread (the session's).
#pragma once

#include "daemon/door/amqp/channel.h"
#include "daemon/wire/outbox.h"

namespace bellhop {

class BrokerWriter {
 public:
  // The broker link's. It outlives the writer.
  explicit BrokerWriter(Outbox& outbox) : outbox_(outbox) {}

  // A frame of the client, relayed where it stands. The bytes are borrowed until the end of the turn.
  void relay(Bytes raw) { outbox_.borrow(raw); }
  void append(Bytes frames) { outbox_.append(frames); }
  Buffer& tail() { return outbox_.tail(); }
  // Where bellhop writes whole frames of its own for a channel: never between the frames of a publish of that
  // channel.
  Buffer& own(Channel& channel) { return channel.is_half_sent() ? channel.after_publish : outbox_.tail(); }
  // Copies what is borrowed.
  void detach() { outbox_.own(); }

 private:
  Outbox& outbox_;
};

}  // namespace bellhop
