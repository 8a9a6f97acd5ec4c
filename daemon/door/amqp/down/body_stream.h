// BodyStream: the one restored content that is going out to the client: method and header, then the payload
// piece by piece, as fast as the client takes it. Meanwhile the writer is busy.
//
// One thread (the session's).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "daemon/door/amqp/client_writer.h"
#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/ops/executor.h"

namespace bellhop {

class BodyStream {
 public:
  // `client_outbox` is the client link's; `executor` runs what an object answers on the session's thread.
  BodyStream(const SessionState& state, SessionHost& host, ClientWriter& to_client, Outbox& client_outbox,
             std::shared_ptr<Executor> executor)
      : state_(state),
        host_(host),
        to_client_(to_client),
        client_outbox_(client_outbox),
        executor_(std::move(executor)) {}

  // The client has taken most of what it was handed before. Without this all payloads that are in memory
  // would gather in its outbox.
  bool has_room() const;
  // The delivery is ready, at the front of its queue, the writer is free, and there is room. It is handed
  // when its last byte is written.
  void begin(const std::shared_ptr<Delivery>& delivery);
  // Goes on, if a stream is under way and the client's socket has taken what it was handed. Once a turn.
  void pump();
  // The socket has taken all but the last frame: pump() is to be called, and no event of the socket's
  // will say so.
  bool may_read_last() const;
  // The client is gone or the connection ends: a content that is half out is given up.
  void cancel();

  bool is_streaming() const { return stream_.has_value(); }
  // Precondition: is_streaming().
  const std::shared_ptr<Delivery>& delivery() const { return stream_->delivery; }
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

  const SessionState& state_;
  SessionHost& host_;
  ClientWriter& to_client_;
  Outbox& client_outbox_;
  const std::shared_ptr<Executor> executor_;
  std::optional<Stream> stream_;
  bool yields_ = false;  // a body went out that took a while: no other is begun yet
};

}  // namespace bellhop
