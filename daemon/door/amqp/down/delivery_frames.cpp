#include "daemon/door/amqp/down/delivery_frames.h"

#include <algorithm>
#include <string>

#include "daemon/ops/trouble.h"
#include "proto/claim_frame.h"

namespace bellhop {

using namespace proto;

namespace {

// The longest claim that is collected. Its key may be wrong; the park then carries it.
constexpr uint64_t collected_bytes_max = uint64_t{64} * 1024;

}  // namespace

bool DeliveryFrames::begin(Channel& channel, DeliveryKind kind, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::header;
  out.kind = kind;
  out.method.borrow(frame.raw);
  out.received_bytes = 0;
  out.no_ack = out.settle_when_handed = out.tagged = out.stale = false;
  out.client_tag = 0;
  out.match.reset();
  out.start.clear();
  borrowing_.push_back(channel.id);
  if (kind == DeliveryKind::deliver) {
    auto deliver = decode_deliver(frame.payload);
    if (!deliver) return false;
    out.tag = deliver.value().delivery_tag;
    if (channel.consumers.has_no_ack() || !state_.config().pipelines.empty()) {
      const Consumer* consumer = channel.consumers.find(deliver.value().consumer_tag);
      out.no_ack = consumer != nullptr && consumer->no_ack;
      remember_input(channel, consumer != nullptr ? consumer->input : config::PipelineStep{},
                     deliver.value().exchange);
    }
    out.stale = channel.recovers_awaited != 0 && !out.no_ack;
  } else if (kind == DeliveryKind::get_ok) {
    auto got = decode_get_ok(frame.payload);
    if (!got) return false;
    out.tag = got.value().delivery_tag;
    if (!state_.config().pipelines.empty()) {
      const bool is_known = !channel.gets_awaited.empty();
      remember_input(channel,
                     is_known ? state_.snapshot->routing->step_of_queue(channel.gets_awaited.front().queue)
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
void DeliveryFrames::remember_input(Channel& channel, config::PipelineStep input, std::string_view exchange) {
  if (input.pipeline == nullptr) input.pipeline = state_.snapshot->routing->pipeline(exchange);
  if (input.pipeline == nullptr) return;
  auto& known = channel.inputs;
  if (known.size() > 1024 && known.size() > 2 * channel.tags.client_unsettled()) {
    std::erase_if(known, [&](const auto& entry) {
      return channel.tags.owner(entry.first) == TagWindow::Owner::settled;
    });
  }
  known[channel.out.tag] = config::StepName(input);
}

bool DeliveryFrames::on_header(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  if (out.stage != DeliveryAssembly::Stage::header || frame.payload.size() < 14) return false;
  out.header.borrow(frame.raw);
  out.body_bytes = load_u64(frame.payload.data() + 4);
  if (state_.draining && out.kind == DeliveryKind::deliver && !out.no_ack) {
    // The client gets none of it, and the broker requeues it when the connection ends. Until then bellhop
    // owns the tag, so that no `multiple` covers it.
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    drop(channel);
    return true;
  }
  if (out.stale || (out.settle_when_handed && channel.end.is_local())) {
    // Sent before the broker took the recover: it is in its queue again, and comes with a tag that counts. Or
    // it cannot be acknowledged any more, and would come twice.
    drop(channel);
    return true;
  }
  if (out.kind == DeliveryKind::returned) out.match = tracker_.match_return(channel);
  if (out.body_bytes < claim_prefix_bytes) {
    begin_plain(channel, 0);
  } else {
    out.stage = DeliveryAssembly::Stage::start;
  }
  return true;
}

void DeliveryFrames::drop(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = out.body_bytes == 0 ? DeliveryAssembly::Stage::idle : DeliveryAssembly::Stage::dropping;
  std::erase(borrowing_, channel.id);
}

bool DeliveryFrames::on_body(Channel& channel, const Frame& frame) {
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
      out.memory.grow(frame.payload.size());
      if (whole) finish_claim(channel);
      return true;
    case Stage::relaying:
      if (out.reframed) {
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
void DeliveryFrames::start_body(Channel& channel, const Frame& frame, bool whole) {
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
    if (out.match->stored.claim()) {
      framing = Framing::claim;
    } else {
      framing = out.match->framed ? Framing::inlined : Framing::raw;
    }
  }
  if (framing == Framing::claim && out.body_bytes > collected_bytes_max) {
    // No key is that long, so bellhop does not collect it in memory.
    tell_trouble("oversized claim", "channel " + std::to_string(channel.id),
                 "a message looks like a claim, and no key is that long: relayed as it came",
                 state_.who({{"channel", channel.id}, {"bytes", out.body_bytes}}));
    framing = Framing::raw;
  }
  if (framing == Framing::claim) {
    out.stage = DeliveryAssembly::Stage::collecting;
    put(out.start, frame.payload);
    out.memory = MemoryLease(memory_, MemoryUse::arriving_claim, out.start.size());
    if (whole) finish_claim(channel);
    return;
  }
  Buffer earlier = std::move(out.start);
  out.start = {};
  begin_plain(channel, framing == Framing::inlined ? claim_prefix_bytes : 0);
  if (out.reframed) {
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

// A whole claim came: it goes to the fetcher, behind what its queue holds.
void DeliveryFrames::finish_claim(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  std::erase(borrowing_, channel.id);
  out.memory.end();  // its queue counts it
  auto delivery = new_delivery(channel);
  delivery->body = std::move(out.start);
  out.start = {};
  Bytes method_payload = out.method.payload();
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) {
    delivery->queue = channel.gets_awaited.front().queue;
    channel.gets_awaited.pop_front();
  }
  // A body that is far too long for a claim is hostile or broken: its start says enough, a key it is not.
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
    const Claim& claim = *out.match->stored.claim();
    delivery->named_store = claim.store;
    delivery->expected = {claim.size_bytes, claim.xxh128};
    delivery->stored = std::move(out.match->stored);
    delivery->stored.returned(keeps_nothing(out.match->sent_exchange));
    delivery->client_tag = out.match->client_tag;
    if (delivery->client_tag != 0) channel.confirms.await_return(delivery->client_tag);
    out.match.reset();
  }
  fetcher_.accept(channel, delivery);
}

// What is arriving, as an entry for its queue. Its tag is bellhop's until the client is handed it.
std::shared_ptr<Delivery> DeliveryFrames::new_delivery(Channel& channel) {
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
    if (const Consumer* consumer = channel.consumers.find(delivery->consumer_tag))
      delivery->queue = consumer->queue;
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    out.tagged = true;
  }
  return delivery;
}

void DeliveryFrames::detach_borrowed() {
  for (uint16_t id : borrowing_) {
    Channel* channel = channels_.find(id);
    if (channel == nullptr) continue;
    channel->out.method.detach();
    using Stage = DeliveryAssembly::Stage;
    if (channel->out.stage == Stage::start || channel->out.stage == Stage::collecting)
      channel->out.header.detach();
  }
}

void DeliveryFrames::abandon(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  using Stage = DeliveryAssembly::Stage;
  out.memory.end();
  if (!out.is_half_out() && out.stage != Stage::idle) {
    out.stage = Stage::dropping;
    out.start.clear();
    out.entry.reset();
  }
}

}  // namespace bellhop
