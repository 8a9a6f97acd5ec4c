// Everything that goes to the client, in an order that client libraries can read: the frames of one content
// stand together, nothing of the session between them. Frames that bellhop makes itself while a content is
// under way wait for its end.
#pragma once

#include <algorithm>
#include <memory>

#include "daemon/door/amqp/channel.h"
#include "daemon/wire/outbox.h"
#include "proto/frame.h"

namespace bellhop {

// One thread (the session's).
class ClientWriter {
 public:
  // The client link's. It outlives the writer.
  explicit ClientWriter(Outbox& outbox) : outbox_(outbox) {}

  // A frame of the broker, relayed where it stands. The bytes are borrowed until the end of the turn.
  void relay(Bytes raw) { outbox_.borrow(raw); }
  // A whole frame of the broker that is no content's: relayed, or after the content that is under way.
  void relay_whole(Bytes raw) {
    if (busy_) {
      put(deferred_, raw);
    } else {
      relay(raw);
    }
  }
  // An answer for a channel, at its place: behind the returns that came before it. relay_answer: a frame of
  // the broker; answer: of bellhop's own.
  void relay_answer(Channel& channel, Bytes raw) {
    if (!waits_behind_returns(channel, raw)) relay_whole(raw);
  }
  void answer(Channel& channel, Bytes frames) {
    if (!waits_behind_returns(channel, frames)) put(own(), frames);
  }
  // Body frames of the content under way. The payload stays where it is; `owner` keeps it until it is sent.
  void body(uint16_t channel, Bytes payload, const std::shared_ptr<const void>& owner,
            size_t frame_bytes_max) {
    while (!payload.empty()) {
      const Bytes part =
          payload.first(std::min(payload.size(), frame_bytes_max - proto::frame_overhead_bytes));
      Buffer& out = outbox_.tail();
      const size_t begin = proto::begin_frame(out, proto::frame_body, channel);
      store_u32(out.data() + begin + 3, static_cast<uint32_t>(part.size()));
      outbox_.hold(part, owner);
      outbox_.tail().push_back(proto::frame_end);
      payload = payload.subspan(part.size());
    }
  }
  // Where the other frames of the content under way are written.
  Buffer& content() { return outbox_.tail(); }
  // Where bellhop writes whole frames of its own.
  Buffer& own() { return busy_ ? deferred_ : outbox_.tail(); }

  // Copies what is borrowed.
  void detach() { outbox_.own(); }

  bool is_busy() const { return busy_; }
  void begin_content() { busy_ = true; }
  void end_content() {
    busy_ = false;
    if (deferred_.empty()) return;
    outbox_.append(deferred_);
    deferred_.clear();
  }
  // Something waits, or a content is half out: no heartbeat is needed or possible.
  bool is_quiet() const { return !busy_ && outbox_.empty(); }

 private:
  static bool waits_behind_returns(Channel& channel, Bytes frames) {
    if (channel.returns.empty()) return false;
    channel.returns.push_frames(channel.id, channel.generation, DeliveryKind::returned, frames);
    return true;
  }

  Outbox& outbox_;
  bool busy_ = false;
  Buffer deferred_;
};

}  // namespace bellhop
