// BodyStream: the one restored content that is going out to the client: method and header, then the payload
// piece by piece, as fast as the client takes it. Meanwhile the writer is busy.
//
// One thread (the session's).
#pragma once

#include <memory>
#include <optional>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class BodyStream {
 public:
  explicit BodyStream(SessionCore& core) : core_(core) {}

  // The client has taken most of what it was handed before. Without this all payloads that are in memory
  // would gather in its outbox.
  bool has_room() const;
  // The delivery is ready, at the front of its lane, the writer is free, and there is room.
  void begin(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // The client's socket took something: goes on, if a stream is under way.
  void read_more();
  // The socket has taken all but the last frame: read_more() is to be called, and no event of the socket's
  // will say so.
  bool may_read_last() const;
  // The client is gone or the connection ends: a content that is half out is given up.
  void cancel();

  bool is_streaming() const { return stream_.has_value(); }
  bool is_of(const std::shared_ptr<Delivery>& delivery) const {
    return stream_ && stream_->delivery == delivery;
  }

  // What the broker had sent was relayed: the next large body may begin. Without this a row of them would
  // keep the other channels waiting.
  void broker_had_its_turn() { yields_ = false; }
  bool is_yielding() const { return yields_; }

 private:
  struct Stream {
    std::shared_ptr<Delivery> delivery;
    uint64_t offset = 0;
    bool reading = false;
    bool is_at_last = false;  // only the last frame is left
  };

  void end();

  SessionCore& core_;
  std::optional<Stream> stream_;
  bool yields_ = false;  // a body went out that took a while: no other is begun yet
};

}  // namespace bellhop
