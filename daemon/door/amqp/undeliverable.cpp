#include "daemon/door/amqp/undeliverable.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/releaser.h"
#include "daemon/ops/trouble.h"
#include "daemon/pipeline/park.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr uint64_t parking_bytes_high = uint64_t{16} << 20;
constexpr size_t on_their_way_max = 256;  // RabbitMQ: 200 a channel, and what the sockets hold of large ones
constexpr size_t aside_max = 64;
constexpr uint32_t backoff_first_ms = 200, backoff_max_ms = 10000;

bool has_header(Bytes header_payload, std::string_view name) {
  auto header = proto::decode_content_header(header_payload);
  if (!header) return false;
  proto::TableCursor cursor(header.value().header_fields());
  while (auto field = cursor.next()) {
    if (field->name == name) return true;
  }
  return false;
}

// Takes plain frames apart again: a park needs header and body as they came.
void unframe(Delivery& delivery) {
  if (delivery.unframed) put(delivery.body, proto::claim_inline_prefix);
  for (Bytes rest = delivery.frames; rest.size() >= proto::frame_overhead_bytes;) {
    size_t bytes = load_u32(rest.data() + 3);
    Bytes payload = rest.subspan(proto::frame_head_bytes, bytes);
    if (rest[0] == proto::frame_header) delivery.header.assign(payload.begin(), payload.end());
    if (rest[0] == proto::frame_body) put(delivery.body, payload);
    rest = rest.subspan(bytes + proto::frame_overhead_bytes);
  }
  delivery.frames = {};
}

// What a park of it keeps in memory until the broker has it: the message, its frames, and these once more in
// the outbox.
uint64_t parking_bytes_of(const Delivery& delivery) {
  return 3 * (uint64_t{delivery.header.size()} + delivery.body.size());
}

}  // namespace

void Undeliverable::fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  core_.fetcher->free_slot(*delivery);
  spdlog::error("session={} channel={} queue={} delivery cannot be restored reason=\"{}\"", core_.session_id,
                delivery->channel, delivery->queue, reason);
  delivery->reason = reason;
  if (delivery->kind == DeliveryKind::returned) {
    give_up_return(*channel, delivery);
    return;
  }
  // A channel that closes gives the delivery back to the broker.
  if (channel->state != Channel::State::open) return;
  if ((is_parked_queue(delivery->queue) || !is_parkable(delivery->header)) && hand_over(*channel, delivery))
    return;
  if (has_header(delivery->header, "x-stream-offset")) {
    spdlog::error("session={} channel={} stream={} message skipped: a stream's message cannot be parked",
                  core_.session_id, delivery->channel, delivery->queue);
    settle(*channel, delivery);
    return;
  }
  if (core_.config.undeliverable_reject && !delivery->no_ack) {
    core_.own_settles->settle(*channel, delivery->tag, true);
    delivery->tag = 0;
    settle(*channel, delivery);
    return;
  }
  park(delivery);
  core_.lanes->pump(*channel);
}

// The client cannot be told with a return that no queue took its publish. Where there are confirms a nack
// says so, and it publishes again. A close of the channel would give back all that it has not acknowledged.
void Undeliverable::give_up_return(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  const bool confirms = delivery->client_tag != 0;
  tell_trouble(
      "return given up", subject_of_reason(delivery->reason),
      fmt::format("session={} channel={} key={} a returned message is not handed over, its payload stays "
                  "in the store{}: {}",
                  core_.session_id, delivery->channel, delivery->key,
                  confirms ? ", its publish is nacked" : "", delivery->reason),
      spdlog::level::err);
  delivery->state = Delivery::State::settled;
  if (confirms) core_.outcomes->deny(channel, delivery->client_tag);
  core_.lanes->pump(channel);
}

// A consumer's delivery leaves its lane. A get stays at its place until it is answered, which must not come
// before the park: the client may close as soon as it knows that there is nothing.
void Undeliverable::park(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  const bool is_get = delivery->kind == DeliveryKind::get_ok && !delivery->is_answered;
  const uint64_t bytes = parking_bytes_of(*delivery);
  if (!is_get) core_.lanes->take_out(*channel, delivery);
  delivery->state = Delivery::State::parking;
  if (!core_.shared.parks.take(bytes)) {
    not_parked(*channel, delivery, Parks::Outcome::not_now, "too much is being parked at once");
    return;
  }
  parking_++;
  parking_gets_ += is_get ? 1 : 0;
  parking_bytes_ += bytes;
  channel->parks_pending++;
  core_.parks->park(*delivery, delivery->reason,
                    [this, delivery, bytes, is_get](Parks::Outcome outcome, const std::string& why) {
                      parking_--;
                      parking_gets_ -= is_get ? 1 : 0;
                      parking_bytes_ -= bytes;
                      core_.shared.parks.give_back(bytes);
                      parked(delivery, outcome, why);
                    });
}

void Undeliverable::parked(const std::shared_ptr<Delivery>& delivery, Parks::Outcome outcome,
                           const std::string& why) {
  Channel* channel = core_.channel_of(*delivery);
  if (outcome == Parks::Outcome::parked) {
    spdlog::warn("session={} channel={} queue={} message parked reason=\"{}\"", core_.session_id,
                 delivery->channel, delivery->queue, delivery->reason);
  } else if (channel == nullptr) {
    spdlog::error("session={} queue={} message not parked, {}: {}", core_.session_id, delivery->queue,
                  delivery->no_ack ? "it is lost" : "the broker has it back", why);
  }
  if (channel == nullptr) return;
  channel->parks_pending--;
  if (outcome == Parks::Outcome::parked) {
    settle(*channel, delivery);
  } else {
    not_parked(*channel, delivery, outcome, why);
  }
  // Its channel's close may have waited for it.
  if (Channel* still = core_.channel_of(*delivery)) core_.releaser->pump(*still);
}

void Undeliverable::not_parked(Channel& channel, const std::shared_ptr<Delivery>& delivery,
                               Parks::Outcome outcome, const std::string& why) {
  const bool again = outcome == Parks::Outcome::not_now && aside_.size() < aside_max;
  if (delivery->no_ack) {
    if (hand_over(channel, delivery)) return;
    if (again) {
      set_aside(delivery);
    } else {
      tell_lost(*delivery, why);
    }
    return;
  }
  if (!std::exchange(delivery->is_told, true)) {
    tell_trouble(
        "message stays unacknowledged", "queue " + delivery->queue,
        fmt::format("session={} channel={} queue={} message stays unacknowledged, those behind it go on: "
                    "bellhop can neither restore nor park it{}: {} reason=\"{}\"",
                    core_.session_id, delivery->channel, delivery->queue, again ? ", and retries" : "", why,
                    delivery->reason),
        spdlog::level::err);
  }
  if (again) set_aside(delivery);
  if (delivery->kind != DeliveryKind::get_ok) return;
  delivery->state = Delivery::State::settled;
  answer_get(channel, *delivery);
  core_.lanes->pump(channel);
}

void Undeliverable::tell_lost(const Delivery& delivery, const std::string& why) {
  spdlog::error("session={} channel={} queue={} message not parked, it is lost: {} claim={} reason=\"{}\"",
                core_.session_id, delivery.channel, delivery.queue, why,
                proto::is_redeemable_key(delivery.key, proto::KeyRule::any) ? delivery.key : "none",
                delivery.reason);
}

void Undeliverable::set_aside(const std::shared_ptr<Delivery>& delivery) {
  delivery->backoff_ms = std::min(std::max(delivery->backoff_ms * 2, backoff_first_ms), backoff_max_ms);
  aside_.push_back({delivery, core_.now_ms() + delivery->backoff_ms});
  core_.on_tick_wanted(delivery->backoff_ms);
}

std::optional<uint64_t> Undeliverable::tick() {
  const uint64_t now = core_.now_ms();
  std::optional<uint64_t> next;
  for (Aside& aside : std::exchange(aside_, {})) {
    Channel* channel = core_.channel_of(*aside.delivery);
    const bool is_open = channel != nullptr && channel->state == Channel::State::open;
    if (!is_open && aside.delivery->no_ack) tell_lost(*aside.delivery, "its channel ended");
    // A channel that ended, or recovered, gave it back.
    if (!is_open ||
        (!aside.delivery->no_ack && channel->tags.owner(aside.delivery->tag) != TagWindow::Owner::bellhop))
      continue;
    if (now >= aside.retry_at_ms) {
      park(aside.delivery);
      continue;
    }
    next = std::min(next.value_or(UINT64_MAX), aside.retry_at_ms - now);
    aside_.push_back(std::move(aside));
  }
  return next;
}

bool Undeliverable::is_full() const {
  return parking_bytes_ >= parking_bytes_high && parking_ >= on_their_way_max * core_.open_channels();
}

// False: there is no consumer to hand it to.
bool Undeliverable::hand_over(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  if (core_.client_gone || channel.state != Channel::State::open || delivery->method.empty()) return false;
  if (delivery->kind == DeliveryKind::deliver && !channel.consumers.contains(delivery->consumer_tag))
    return false;
  spdlog::warn("session={} channel={} queue={} message handed over as it stands reason=\"{}\"",
               core_.session_id, delivery->channel, delivery->queue, delivery->reason);
  Buffer frames;
  proto::put_frame(frames, proto::frame_method, channel.id, delivery->method);
  proto::put_frame(frames, proto::frame_header, channel.id, delivery->header);
  proto::put_body_frames(frames, channel.id, delivery->body, core_.frame_bytes_max);
  core_.lanes->make_plain(channel, delivery, std::move(frames));
  core_.lanes->pump(channel);
  return true;
}

// Only the acknowledgement of the original is left to do.
void Undeliverable::settle(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  delivery->state = Delivery::State::settled;
  if (!delivery->no_ack && channel.tags.owner(delivery->tag) == TagWindow::Owner::bellhop) {
    core_.own_settles->settle(channel, delivery->tag);
  }
  answer_get(channel, *delivery);
  core_.lanes->pump(channel);
}

// The client waits for an answer to its get: there is nothing for it.
void Undeliverable::answer_get(Channel& channel, Delivery& delivery) {
  if (delivery.kind != DeliveryKind::get_ok || std::exchange(delivery.is_answered, true)) return;
  Buffer empty;
  proto::put_empty_method(empty, proto::method::basic_get_empty, channel.id, 1);
  if (!core_.lanes->waits_behind_returns(channel, empty)) put(core_.writer->own(), empty);
}

void Undeliverable::give_up_held(Channel& channel) {
  for (const auto& delivery : Lane(channel.deliveries)) {
    if (delivery->no_ack && delivery->kind == DeliveryKind::deliver && !delivery->open)
      park_unhanded(channel, delivery);
  }
}

void Undeliverable::park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  using State = Delivery::State;
  if (delivery->state == State::settled || core_.body_stream->is_of(delivery)) return;
  core_.fetcher->free_slot(*delivery);
  core_.lanes->take_out(channel, delivery);
  if (delivery->state == State::plain) unframe(*delivery);
  delivery->permanent = true;
  // A message that returns to a parked queue keeps its reason.
  if (delivery->reason.empty() && !is_parked_queue(delivery->queue)) {
    delivery->reason = delivery->unavailable.empty() ? "its consumer ended before it could be handed over"
                                                     : "store unavailable: " + delivery->unavailable;
  }
  park(delivery);
}

}  // namespace bellhop
