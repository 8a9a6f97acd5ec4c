#include "daemon/door/amqp/deliverer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/ops/trouble.h"
#include "proto/claim_frame.h"

namespace bellhop {

using namespace proto;

namespace {

// The longest claim that is collected. Its key may be wrong; the park then carries it.
constexpr uint64_t collected_bytes_max = uint64_t{64} * 1024;
// Of what waits in a lane, by the size that the broker announced: one session holds no more than that anyway.
constexpr uint64_t reserved_bytes_max = uint64_t{16} << 20;

// The basic.return that is arriving, matched with the publish that the client sent.
void put_original_return(Buffer& out, const Channel& channel) {
  const Sent& sent = *channel.out.match;
  auto returned = decode_return(channel.out.method.payload());
  put_return(out, channel.id,
             {returned.value().reply_code, returned.value().reply_text, sent.exchange, sent.routing_key});
}

}  // namespace

bool Deliverer::begin(Channel& channel, DeliveryKind kind, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::header;
  out.kind = kind;
  out.method.borrow(frame.raw);
  out.received_bytes = 0;
  out.no_ack = out.settle_when_handed = out.tagged = out.stale = false;
  out.client_tag = 0;
  out.match.reset();
  out.start.clear();
  held_.push_back(channel.id);
  if (kind == DeliveryKind::deliver) {
    auto deliver = decode_deliver(frame.payload);
    if (!deliver) return false;
    out.tag = deliver.value().delivery_tag;
    if (channel.no_ack_consumers != 0 || !core_.config.pipelines.empty()) {
      auto found = channel.consumers.find(deliver.value().consumer_tag);
      const bool is_known = found != channel.consumers.end();
      out.no_ack = is_known && found->second.no_ack;
      remember_input(channel, is_known ? found->second.input : config::PipelineStep{},
                     deliver.value().exchange);
    }
    out.stale = channel.recovers_awaited != 0 && !out.no_ack;
  } else if (kind == DeliveryKind::get_ok) {
    auto got = decode_get_ok(frame.payload);
    if (!got) return false;
    out.tag = got.value().delivery_tag;
    if (!core_.config.pipelines.empty()) {
      const bool is_known = !channel.gets_awaited.empty();
      remember_input(channel,
                     is_known ? core_.shared.routing->step_of_queue(channel.gets_awaited.front().queue)
                              : config::PipelineStep{},
                     got.value().exchange);
    }
    bool no_ack = !channel.gets_awaited.empty() && channel.gets_awaited.front().no_ack;
    out.no_ack = no_ack && channel.tx;
    out.settle_when_handed = no_ack && !channel.tx;
    if (channel.recovers_awaited != 0) {
      // Its tag is no longer valid, but the client waits for an answer.
      out.no_ack = true;
      out.settle_when_handed = false;
    }
  } else {
    out.tag = 0;
    out.no_ack = true;
  }
  return true;
}

// A hop may name its input by tag only. The queue that the input came from (`input`), else its exchange,
// then tells the pipeline, and the step of a message without a slip.
void Deliverer::remember_input(Channel& channel, config::PipelineStep input, std::string_view exchange) {
  if (input.pipeline == nullptr) input.pipeline = core_.shared.routing->pipeline(exchange);
  if (input.pipeline == nullptr) return;
  auto& known = channel.inputs;
  if (known.size() > 1024 && known.size() > 2 * channel.tags.client_unsettled()) {
    std::erase_if(known, [&](const auto& entry) {
      return channel.tags.owner(entry.first) == TagWindow::Owner::settled;
    });
  }
  known[channel.out.tag] = input;
}

bool Deliverer::on_header(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  if (out.stage != DeliveryAssembly::Stage::header || frame.payload.size() < 14) return false;
  out.header.borrow(frame.raw);
  out.body_bytes = load_u64(frame.payload.data() + 4);
  if (core_.draining && out.kind == DeliveryKind::deliver && !out.no_ack) {
    // The client gets none of it, and the broker requeues it when the connection ends. Until then bellhop
    // owns the tag, so that no `multiple` covers it.
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    drop(channel);
    return true;
  }
  if (out.stale || (out.settle_when_handed && channel.state == Channel::State::local_closing)) {
    // Sent before the broker took the recover: it is in its queue again, and comes with a tag that counts. Or
    // it cannot be acknowledged any more, and would come twice.
    drop(channel);
    return true;
  }
  if (out.kind == DeliveryKind::returned) out.match = core_.outcomes->match_return(channel);
  if (out.body_bytes < claim_prefix_bytes) {
    begin_plain(channel, 0);
  } else {
    out.stage = DeliveryAssembly::Stage::start;
  }
  return true;
}

void Deliverer::drop(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = out.body_bytes == 0 ? DeliveryAssembly::Stage::idle : DeliveryAssembly::Stage::dropping;
  std::erase(held_, channel.id);
}

bool Deliverer::on_body(Channel& channel, const Frame& frame) {
  using Stage = DeliveryAssembly::Stage;
  DeliveryAssembly& out = channel.out;
  if (out.stage == Stage::idle || out.stage == Stage::header) return false;
  if (frame.payload.size() > out.body_bytes - out.received_bytes) return false;
  out.received_bytes += frame.payload.size();
  bool whole = out.received_bytes == out.body_bytes;
  switch (out.stage) {
    case Stage::dropping:
      if (whole) out.stage = Stage::idle;
      return true;
    case Stage::collecting:
      put(out.start, frame.payload);
      core_.take_for_client(channel, frame.payload.size());
      if (whole) finish_check(channel);
      return true;
    case Stage::relaying:
      if (out.stripped) {
        reframe_body(channel, frame.payload, whole);
      } else {
        relay_body(channel, frame);
      }
      if (whole) finish_plain(channel);
      return true;
    default:
      start_body(channel, frame, whole);
      return true;
  }
}

// The first body bytes tell the framing.
void Deliverer::start_body(Channel& channel, const Frame& frame, bool whole) {
  DeliveryAssembly& out = channel.out;
  if (out.start.size() + frame.payload.size() < claim_prefix_bytes) {
    // RabbitMQ fills its frames; another broker may not.
    put(out.start, frame.payload);
    return;
  }
  uint8_t first[claim_prefix_bytes];
  size_t have = std::min(out.start.size(), claim_prefix_bytes);
  std::copy_n(out.start.begin(), have, first);
  std::copy_n(frame.payload.begin(), claim_prefix_bytes - have, first + have);
  Framing framing = framing_of(first);
  if (out.match != nullptr) {
    if (out.match->transaction.claim()) {
      framing = Framing::claim;
    } else {
      framing = out.match->framed ? Framing::inlined : Framing::raw;
    }
  }
  if (framing == Framing::claim && out.body_bytes > collected_bytes_max) {
    // No key is that long, so bellhop does not collect it in memory.
    tell_trouble("oversized claim", "channel " + std::to_string(channel.id),
                 fmt::format("session={} channel={} a message of {} bytes looks like a claim, and no key is "
                             "that long: relayed as it came",
                             core_.session_id, channel.id, out.body_bytes));
    framing = Framing::raw;
  }
  if (framing == Framing::claim) {
    out.stage = DeliveryAssembly::Stage::collecting;
    core_.collecting++;
    core_.take_for_client(channel, out.start.size() + frame.payload.size());
    put(out.start, frame.payload);
    if (whole) finish_check(channel);
    return;
  }
  Buffer earlier = std::move(out.start);
  out.start = {};
  begin_plain(channel, framing == Framing::inlined ? claim_prefix_bytes : 0);
  if (out.stripped) {
    if (!earlier.empty()) reframe_body(channel, earlier, false);
    reframe_body(channel, frame.payload, whole);
    if (whole) finish_plain(channel);
    return;
  }
  if (!earlier.empty()) {
    Buffer made;
    put_frame(made, frame_body, channel.id, earlier);
    relay_body(channel, {frame_body, channel.id, Bytes(made).subspan(frame_head_bytes, earlier.size()), {}});
  }
  relay_body(channel, frame);
  if (whole) finish_plain(channel);
}

// Writes method and content header (which has no more than it came with, and so keeps its size) as the client
// is to see them, to the client or into the channel's lane behind what is held.
void Deliverer::begin_plain(Channel& channel, size_t strip_bytes) {
  DeliveryAssembly& out = channel.out;
  Lane& lane = channel.lane(out.kind);
  std::erase(held_, channel.id);
  auto header =
      strip_bytes == 0 ? Result<ContentHeader>(Error{}) : decode_content_header(out.header.payload());
  // bellhop relays a header that it cannot decode, byte for byte.
  if (!header) strip_bytes = 0;
  out.strip_bytes = strip_bytes;
  out.stripped = strip_bytes != 0;
  out.refill.clear();
  out.stage = DeliveryAssembly::Stage::relaying;
  out.queued = !lane.empty() || !channel.returns.empty() || core_.writer->is_busy();
  if (out.queued) {
    auto delivery = new_delivery(channel);
    delivery->open = true;
    delivery->unframed = strip_bytes != 0;
    if (out.match != nullptr && out.match->client_tag != 0) {
      out.client_tag = delivery->client_tag = out.match->client_tag;
      channel.confirms.hold(delivery->client_tag);
    }
    // Room for all of it at once: a buffer that grows takes half as much again, and leaves holes.
    const uint64_t body_bytes = std::min<uint64_t>(out.body_bytes, reserved_bytes_max);
    const uint64_t frame_count = body_bytes / (core_.frame_bytes_max - frame_overhead_bytes) + 4;
    delivery->frames.reserve(out.method.view().size() + out.header.view().size() + body_bytes +
                             frame_count * frame_overhead_bytes);
    core_.lanes->push(channel, lane, std::move(delivery));
  } else {
    core_.writer->begin_content();
  }
  Buffer* to = out.queued ? &lane.back()->frames : &core_.writer->content();
  size_t before = to->size();
  if (out.match != nullptr) {
    put_original_return(*to, channel);
    put_frame(*to, frame_header, channel.id, out.match->header);
  } else {
    if (out.queued) {
      put(*to, out.method.view());
    } else {
      core_.writer->relay(out.method.view());
    }
    if (header) {
      HeaderEdits edits;
      edits.body_bytes = out.body_bytes - strip_bytes;
      put_content_header(out.queued ? *to : core_.writer->content(), channel.id, header.value(), edits,
                         broker_header_frame_bytes_max);
    } else if (out.queued) {
      put(*to, out.header.view());
    } else {
      core_.writer->relay(out.header.view());
    }
  }
  if (out.queued) core_.take_for_client(channel, to->size() - before);
  if (out.body_bytes == 0) finish_plain(channel);
}

void Deliverer::relay_body(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  if (out.queued) {
    Buffer& frames = channel.lane(out.kind).back()->frames;
    size_t before = frames.size();
    put_frame(frames, frame_body, channel.id, frame.payload);
    core_.take_for_client(channel, frames.size() - before);
  } else if (frame.raw.empty()) {
    put_frame(core_.writer->content(), frame_body, channel.id, frame.payload);
  } else {
    core_.writer->relay(frame.raw);
  }
}

// A body without its inline prefix. RabbitMQ fills every frame but the last, and there are clients that count
// a body's frames by its size: what the prefix leaves free is filled from the next frame.
void Deliverer::reframe_body(Channel& channel, Bytes payload, bool last) {
  DeliveryAssembly& out = channel.out;
  size_t skip = std::min(out.strip_bytes, payload.size());
  out.strip_bytes -= skip;
  payload = payload.subspan(skip);
  Buffer& frames = out.queued ? channel.lane(out.kind).back()->frames : core_.writer->content();
  size_t before = frames.size();
  if (last && out.refill.empty()) {
    put_body_frames(frames, channel.id, payload, core_.frame_bytes_max);
  } else {
    put(out.refill, payload);
    size_t full_bytes = core_.frame_bytes_max - frame_overhead_bytes;
    size_t ready_bytes = last ? out.refill.size() : out.refill.size() / full_bytes * full_bytes;
    put_body_frames(frames, channel.id, Bytes(out.refill).first(ready_bytes), core_.frame_bytes_max);
    out.refill.erase(out.refill.begin(), out.refill.begin() + static_cast<ptrdiff_t>(ready_bytes));
  }
  if (out.queued) core_.take_for_client(channel, frames.size() - before);
}

void Deliverer::finish_plain(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
  if (out.queued) {
    Lane& lane = channel.lane(out.kind);
    lane.back()->open = false;
    core_.lanes->pump(channel);
    if (!lane.empty()) core_.spill->consider(lane.back());
    return;
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack && !out.tagged) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
  }
  core_.writer->end_content();
  handed(channel, out.kind, out.tag, out.no_ack, out.settle_when_handed, out.client_tag);
}

// A whole check came: it goes to the fetcher, behind what its lane holds.
void Deliverer::finish_check(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  std::erase(held_, channel.id);
  core_.collecting--;
  auto delivery = new_delivery(channel);
  delivery->body = std::move(out.start);
  core_.give_back_for_client(channel, delivery->body.size());  // its lane counts it
  out.start = {};
  Bytes method_payload = out.method.payload();
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) {
    delivery->queue = channel.gets_awaited.front().queue;
    channel.gets_awaited.pop_front();
  }
  // A body that is far too long for a check is hostile or broken: its start says enough, a key it is not.
  delivery->key =
      as_text(Bytes(delivery->body).subspan(claim_prefix_bytes)).substr(0, 2 * claim_key_bytes_max);
  delivery->method.assign(method_payload.begin(), method_payload.end());
  Bytes header_payload = out.header.payload();
  delivery->header.assign(header_payload.begin(), header_payload.end());
  if (out.match != nullptr) {
    Buffer rewritten;
    put_original_return(rewritten, channel);
    delivery->method.assign(rewritten.begin() + frame_head_bytes, rewritten.end() - 1);
    delivery->header = std::move(out.match->header);
    const Claim& claim = *out.match->transaction.claim();
    delivery->named_store = claim.store;
    delivery->expected = {claim.size_bytes, claim.xxh128};
    delivery->transaction = std::move(out.match->transaction);
    delivery->transaction.returned(keeps_nothing(out.match->sent_exchange));
    delivery->client_tag = out.match->client_tag;
    if (delivery->client_tag != 0) channel.confirms.hold(delivery->client_tag);
    out.match.reset();
  }
  core_.fetcher->accept(channel, channel.lane(out.kind), delivery);
}

// What is arriving, as an entry for its lane. Its tag is bellhop's until the client is handed it.
std::shared_ptr<Delivery> Deliverer::new_delivery(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  auto delivery = std::make_shared<Delivery>();
  delivery->channel = channel.id;
  delivery->generation = channel.generation;
  delivery->kind = out.kind;
  delivery->tag = out.tag;
  delivery->no_ack = out.no_ack;
  delivery->settle_when_handed = out.settle_when_handed;
  if (out.kind == DeliveryKind::deliver) {
    delivery->consumer_tag = decode_deliver(out.method.payload()).value().consumer_tag;
    delivery->queue = queue_of(channel, delivery->consumer_tag);
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    out.tagged = true;
  }
  return delivery;
}

void Deliverer::handed(Channel& channel, DeliveryKind kind, uint64_t tag, bool no_ack,
                       bool settle_when_handed, uint64_t client_tag) {
  if (client_tag != 0) {
    core_.outcomes->release(channel, client_tag);
  }
  if (kind == DeliveryKind::returned || no_ack) return;
  if (settle_when_handed) {
    core_.own_settles->settle(channel, tag);
  } else {
    channel.tags.give(tag, TagWindow::Owner::client);
  }
}

std::string Deliverer::queue_of(Channel& channel, std::string_view consumer_tag) const {
  auto found = channel.consumers.find(std::string(consumer_tag));
  return found == channel.consumers.end() ? std::string() : found->second.queue;
}

void Deliverer::detach_held() {
  for (uint16_t id : held_) {
    Channel* channel = core_.channel(id);
    if (channel == nullptr) continue;
    channel->out.method.detach();
    using Stage = DeliveryAssembly::Stage;
    if (channel->out.stage == Stage::start || channel->out.stage == Stage::collecting)
      channel->out.header.detach();
  }
}

void Deliverer::abandon(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  using Stage = DeliveryAssembly::Stage;
  if (out.stage == Stage::collecting) {
    core_.give_back_for_client(channel, out.start.size());
    core_.collecting--;
  }
  if (!out.is_half_out() && out.stage != Stage::idle) {
    out.stage = Stage::dropping;
    out.start.clear();
  }
}

}  // namespace bellhop
