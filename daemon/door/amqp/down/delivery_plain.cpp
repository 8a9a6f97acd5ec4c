// The contents that need no store: written to the client as they come, or into their channel's queue behind
// what is held. The rest of the class: delivery_frames.cpp.
#include <algorithm>
#include <string>
#include <utility>

#include "daemon/door/amqp/down/delivery_frames.h"
#include "daemon/door/amqp/tap_lines.h"
#include "proto/claim_frame.h"

namespace bellhop {

using namespace proto;

namespace {

// Of what waits in a queue, by the size that the broker announced: one session holds no more than that
// anyway.
constexpr uint64_t reserved_bytes_max = uint64_t{16} << 20;

}  // namespace

// The basic.return that is arriving, matched with the publish that the client sent.
void DeliveryFrames::put_original_return(Buffer& out, const Channel& channel) {
  const Sent& sent = *channel.out.match;
  auto returned = decode_return(channel.out.method.payload());
  put_return(out, channel.id,
             {returned.value().reply_code, returned.value().reply_text, sent.exchange, sent.routing_key});
}

// Writes method and content header (which has no more than it came with, and so keeps its size) as the client
// is to see them, to the client or into the channel's queue behind what is held.
void DeliveryFrames::begin_plain(Channel& channel, size_t strip_bytes) {
  DeliveryAssembly& out = channel.out;
  DeliveryQueue& queue = channel.queue_of(out.kind);
  std::erase(borrowing_, channel.id);
  auto header =
      strip_bytes == 0 ? Result<ContentHeader>(Error{}) : decode_content_header(out.header.payload());
  // bellhop relays a header that it cannot decode, byte for byte.
  if (!header) strip_bytes = 0;
  out.strip_bytes = strip_bytes;
  out.unframed = strip_bytes != 0;
  out.reframed = strip_bytes != 0 || out.body_bytes > state_.relayed_body_bytes_max;
  out.refill.clear();
  out.stage = DeliveryAssembly::Stage::relaying;
  out.queued = !queue.empty() || !channel.returns.empty() || to_client_.is_busy();
  if (out.queued) {
    auto delivery = new_delivery(channel);
    delivery->open = true;
    delivery->unframed = strip_bytes != 0;
    if (out.match != nullptr && out.match->client_tag != 0) {
      out.client_tag = delivery->client_tag = out.match->client_tag;
      channel.confirms.await_return(delivery->client_tag);
    }
    // Room for all of it at once: a buffer that grows takes half as much again, and leaves holes.
    const uint64_t body_bytes = std::min<uint64_t>(out.body_bytes, reserved_bytes_max);
    const uint64_t frame_count = body_bytes / (state_.frame_bytes_max - frame_overhead_bytes) + 4;
    delivery->frames.reserve(out.method.view().size() + out.header.view().size() + body_bytes +
                             frame_count * frame_overhead_bytes);
    out.entry = delivery;
    queue.push(std::move(delivery));
  } else {
    to_client_.begin_content();
  }
  if (state_.shared.taps.is_on() && out.kind != DeliveryKind::returned) {
    TapLine line = tap_line(state_, channel, out.body_bytes - strip_bytes);
    if (out.queued) {
      out.entry->tapped = std::make_unique<TapLine>(std::move(line));
      out.entry->grow();
    } else {
      tell(state_, line);
    }
  }
  Buffer* to = out.queued ? &out.entry->frames : &to_client_.content();
  if (out.match != nullptr) {
    put_original_return(*to, channel);
    put_frame(*to, frame_header, channel.id, out.match->header);
  } else {
    if (out.queued) {
      put(*to, out.method.view());
    } else {
      to_client_.relay(out.method.view());
    }
    if (header) {
      HeaderEdits edits;
      edits.body_bytes = out.body_bytes - strip_bytes;
      put_content_header(out.queued ? *to : to_client_.content(), channel.id, header.value(), edits,
                         broker_header_frame_bytes_max);
    } else if (out.queued) {
      put(*to, out.header.view());
    } else {
      to_client_.relay(out.header.view());
    }
  }
  if (out.queued) out.entry->grow();
  if (out.body_bytes == 0) finish_plain(channel);
}

void DeliveryFrames::relay_body(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  if (out.queued) {
    put_frame(out.entry->frames, frame_body, channel.id, frame.payload);
    out.entry->grow();
  } else if (frame.raw.empty()) {
    put_frame(to_client_.content(), frame_body, channel.id, frame.payload);
  } else {
    to_client_.relay(frame.raw);
  }
}

// A body whose frames are not the client's: an inline prefix is left out, or the broker's are larger.
// RabbitMQ fills every frame but the last, and there are clients that count a body's frames by its size: so
// what is left of one of the broker's frames is filled up from the next.
void DeliveryFrames::reframe_body(Channel& channel, Bytes payload, bool last) {
  DeliveryAssembly& out = channel.out;
  const size_t skip = std::min(out.strip_bytes, payload.size());
  out.strip_bytes -= skip;
  payload = payload.subspan(skip);
  Buffer& frames = out.queued ? out.entry->frames : to_client_.content();
  const size_t full_bytes = state_.frame_bytes_max - frame_overhead_bytes;
  if (!out.refill.empty()) {
    const Bytes filling = payload.first(std::min(payload.size(), full_bytes - out.refill.size()));
    put(out.refill, filling);
    payload = payload.subspan(filling.size());
    if (!last && out.refill.size() < full_bytes) return;
    put_frame(frames, frame_body, channel.id, out.refill);
    out.refill.clear();
  }
  const Bytes ready = last ? payload : payload.first(payload.size() / full_bytes * full_bytes);
  put_body_frames(frames, channel.id, ready, state_.frame_bytes_max);
  if (last) {
    Buffer().swap(out.refill);  // there may be thousands of channels
  } else {
    put(out.refill, payload.subspan(ready.size()));
  }
  if (out.queued) out.entry->grow();
}

void DeliveryFrames::finish_plain(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
  if (out.queued) {
    std::exchange(out.entry, nullptr)->open = false;
    return;
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack && !out.tagged) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
  }
  to_client_.end_content();
  handover_.handed(channel, out.unframed ? DeliveryPath::unframed : DeliveryPath::relayed, out.kind, out.tag,
                   out.no_ack, out.settle_when_handed, out.client_tag);
}

}  // namespace bellhop
