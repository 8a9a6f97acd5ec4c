// Everything that goes to the client, in an order that client libraries can read: the frames of one content
// stand together, nothing of the session between them. Frames that bellhop makes itself while a content is
// under way wait for its end.
#pragma once

#include <algorithm>
#include <memory>

#include "daemon/wire/link.h"
#include "proto/frame.h"

namespace bellhop {

// One thread (the session's).
class ClientWriter {
 public:
  explicit ClientWriter(Link& link) : link_(link) {}

  // A frame of the broker, relayed where it stands. The bytes are borrowed until the end of the turn.
  void relay(Bytes raw) { link_.outbox().borrow(raw); }
  // A whole frame of the broker that is no content's: relayed, or after the content that is under way.
  void relay_whole(Bytes raw) {
    if (busy_) {
      put(deferred_, raw);
    } else {
      relay(raw);
    }
  }
  // Body frames of the content under way. The payload stays where it is; `owner` keeps it until it is sent.
  void body(uint16_t channel, Bytes payload, const std::shared_ptr<const void>& owner,
            size_t frame_bytes_max) {
    Outbox& outbox = link_.outbox();
    while (!payload.empty()) {
      const Bytes part =
          payload.first(std::min(payload.size(), frame_bytes_max - proto::frame_overhead_bytes));
      Buffer& out = outbox.tail();
      const size_t begin = proto::begin_frame(out, proto::frame_body, channel);
      store_u32(out.data() + begin + 3, static_cast<uint32_t>(part.size()));
      outbox.hold(part, owner);
      outbox.tail().push_back(proto::frame_end);
      payload = payload.subspan(part.size());
    }
  }
  // Where the other frames of the content under way are written.
  Buffer& content() { return link_.outbox().tail(); }
  // Where bellhop writes whole frames of its own.
  Buffer& own() { return busy_ ? deferred_ : link_.outbox().tail(); }

  bool is_busy() const { return busy_; }
  void begin_content() { busy_ = true; }
  void end_content() {
    busy_ = false;
    if (deferred_.empty()) return;
    link_.outbox().append(deferred_);
    deferred_.clear();
  }
  // Something waits, or a content is half out: no heartbeat is needed or possible.
  bool is_quiet() const { return !busy_ && link_.outbox().empty(); }

 private:
  Link& link_;
  bool busy_ = false;
  Buffer deferred_;
};

}  // namespace bellhop
