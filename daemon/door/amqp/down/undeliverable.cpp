#include "daemon/door/amqp/down/undeliverable.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/door/amqp/log_about.h"
#include "daemon/ops/backoff.h"
#include "daemon/ops/trouble.h"
#include "daemon/pipeline/park.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr size_t aside_max = 64;
constexpr Backoff backoff{200, 10000};

bool is_of_stream(Bytes header_payload) {
  auto header = proto::decode_content_header(header_payload);
  return header && proto::find_field(header.value().header_fields(), "x-stream-offset");
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

void Undeliverable::take(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = channels_.of(*delivery);
  if (channel == nullptr || !delivery->is(Delivery::State::failed)) return;
  tell_failed(*delivery, "delivery cannot be restored");
  if (delivery->kind == DeliveryKind::returned) {
    give_up_return(*channel, delivery);
    return;
  }
  // A channel that closes gives the delivery back to the broker.
  if (!channel->end.is_open()) return;
  if ((is_parked_queue(delivery->queue) || !is_parkable(delivery->header)) && hand_over(*channel, delivery))
    return;
  if (is_of_stream(delivery->header)) {
    tell_failed(*delivery, "message skipped, a stream's message cannot be parked");
    settle(*channel, delivery);
    return;
  }
  if (state_.config().undeliverable_reject && !delivery->no_ack) {
    proxy_acks_.reject(*channel, delivery->tag, false);
    delivery->tag = 0;
    settle(*channel, delivery);
    return;
  }
  park(delivery);
}

// The client cannot be told with a return that no queue took its publish. Where there are confirms a nack
// says so, and it publishes again. A close of the channel would give back all that it has not acknowledged.
void Undeliverable::give_up_return(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  const bool confirms = delivery->client_tag != 0;
  tell_trouble("return given up", subject_of_reason(delivery->reason),
               confirms ? "a returned message is not handed over, its payload stays in the store, its "
                          "publish is nacked"
                        : "a returned message is not handed over, its payload stays in the store",
               about(state_, *delivery).add({"reason", delivery->reason}), spdlog::level::err);
  delivery->end();
  if (confirms) tracker_.return_lost(channel, delivery->client_tag);
}

// A consumer's delivery leaves its queue. A get stays at its place until it is answered, which must not come
// before the park: the client may close as soon as it knows that there is nothing.
void Undeliverable::park(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = channels_.of(*delivery);
  if (channel == nullptr) return;
  const bool is_get = delivery->kind == DeliveryKind::get_ok && !delivery->is_answered;
  const uint64_t bytes = parking_bytes_of(*delivery);
  if (!is_get) channel->queue_of(delivery->kind).take_out(delivery);
  delivery->park();
  QuotaShare memory(state_.shared.parks, bytes);
  if (!memory) {
    not_parked(*channel, delivery, Parker::Outcome::not_now, "too much is being parked at once");
    return;
  }
  auto under_way =
      std::make_shared<UnderWay>(parking_, Pending(channel->pending), std::move(memory), bytes, is_get);
  const auto begun =
      parker_.park(*delivery, delivery->reason,
                   [this, delivery, under_way](Parker::Outcome outcome, const std::string& why) {
                     under_way->end();
                     parked(delivery, outcome, why);
                   });
  if (begun) return;
  under_way->end();
  parked(delivery, Parker::Outcome::never, begun.error());
}

void Undeliverable::parked(const std::shared_ptr<Delivery>& delivery, Parker::Outcome outcome,
                           const std::string& why) {
  Channel* channel = channels_.of(*delivery);
  if (outcome == Parker::Outcome::parked) {
    state_.meter.parked(delivery->counted_as);
    tell_failed(*delivery, "message parked", spdlog::level::warn);
    if (logs(spdlog::level::debug))
      log_debug("park confirmed", about(state_, *delivery).add({"size", delivery->body.size()}));
  } else if (channel == nullptr) {
    if (delivery->no_ack)
      tell_lost(*delivery, why);
    else
      tell_trouble("park given up", "queue " + delivery->queue, "message not parked, the broker has it back",
                   about(state_, *delivery).add({"reason", why}), spdlog::level::err);
  }
  if (channel == nullptr) return;
  if (outcome == Parker::Outcome::parked) {
    settle(*channel, delivery);
  } else {
    not_parked(*channel, delivery, outcome, why);
  }
}

void Undeliverable::not_parked(Channel& channel, const std::shared_ptr<Delivery>& delivery,
                               Parker::Outcome outcome, const std::string& why) {
  const bool again = outcome == Parker::Outcome::not_now && aside_.size() < aside_max;
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
        again ? "message stays unacknowledged, those behind it go on: bellhop can neither restore nor park "
                "it, and retries"
              : "message stays unacknowledged, those behind it go on: bellhop can neither restore nor park "
                "it",
        about(state_, *delivery).add({{"reason", delivery->reason}, {"not_parked", why}}),
        spdlog::level::err);
  }
  if (again) set_aside(delivery);
  if (delivery->kind != DeliveryKind::get_ok) return;
  delivery->end();
  answer_get(channel, *delivery);
}

// Each one is told: the line is all that is left of it.
void Undeliverable::tell_lost(const Delivery& delivery, const std::string& why) {
  log_error("message not parked, it is lost",
            about(state_, delivery).add({{"reason", delivery.reason}, {"not_parked", why}}));
}

// A queue may hold many that nobody can restore, so its first one is told, and how many more there are.
void Undeliverable::tell_failed(const Delivery& delivery, const char* what,
                                spdlog::level::level_enum level) const {
  tell_trouble(what, delivery.queue + ": " + subject_of_reason(delivery.reason), what,
               about(state_, delivery).add({"reason", delivery.reason}), level);
}

void Undeliverable::set_aside(const std::shared_ptr<Delivery>& delivery) {
  const uint32_t wait_ms = backoff.wait_ms(++delivery->failures, jitter_);
  aside_.push_back({delivery, host_.now_ms() + wait_ms});
  host_.wake_within(wait_ms);
}

std::optional<uint64_t> Undeliverable::tick() {
  const uint64_t now = host_.now_ms();
  std::optional<uint64_t> next;
  for (Aside& aside : std::exchange(aside_, {})) {
    Channel* channel = channels_.of(*aside.delivery);
    const bool is_open = channel != nullptr && channel->end.is_open();
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

// False: there is no consumer to hand it to.
bool Undeliverable::hand_over(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  if (state_.client_gone || !channel.end.is_open() || delivery->method.empty()) return false;
  if (delivery->kind == DeliveryKind::deliver && channel.consumers.find(delivery->consumer_tag) == nullptr)
    return false;
  tell_failed(*delivery, "message handed over as it stands", spdlog::level::warn);
  Buffer frames;
  proto::put_frame(frames, proto::frame_method, channel.id, delivery->method);
  proto::put_frame(frames, proto::frame_header, channel.id, delivery->header);
  proto::put_body_frames(frames, channel.id, delivery->body, state_.frame_bytes_max);
  delivery->make_plain(std::move(frames));
  // At its place, or last when it had left its queue.
  DeliveryQueue& queue = channel.queue_of(delivery->kind);
  if (!queue.contains(delivery)) queue.push(delivery);
  return true;
}

// Only the acknowledgement of the original is left to do.
void Undeliverable::settle(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  delivery->end();
  if (!delivery->no_ack && channel.tags.owner(delivery->tag) == TagWindow::Owner::bellhop)
    proxy_acks_.ack(channel, delivery->tag);
  answer_get(channel, *delivery);
}

// The client waits for an answer to its get: there is nothing for it.
void Undeliverable::answer_get(Channel& channel, Delivery& delivery) {
  if (delivery.kind != DeliveryKind::get_ok || std::exchange(delivery.is_answered, true)) return;
  if (!channel.end.is_served()) return;
  Buffer empty;
  proto::put_empty_method(empty, proto::method::basic_get_empty, channel.id, 1);
  to_client_.answer(channel, empty);
}

void Undeliverable::park_all_unhanded(Channel& channel) {
  std::vector<std::shared_ptr<Delivery>> unhanded;
  std::copy_if(channel.deliveries.begin(), channel.deliveries.end(), std::back_inserter(unhanded),
               [](const auto& delivery) {
                 return delivery->no_ack && delivery->kind == DeliveryKind::deliver && !delivery->open;
               });
  for (const auto& delivery : unhanded) park_unhanded(channel, delivery);
}

void Undeliverable::park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  using State = Delivery::State;
  if (delivery->is(State::ended) || delivery->is(State::handed) || body_stream_.is_of(delivery)) return;
  channel.queue_of(delivery->kind).take_out(delivery);
  if (delivery->is(State::plain)) unframe(*delivery);
  // A message that returns to a parked queue keeps its reason.
  if (delivery->reason.empty() && !is_parked_queue(delivery->queue)) {
    delivery->reason = delivery->unavailable.empty() ? "its consumer ended before it could be handed over"
                                                     : "store unavailable: " + delivery->unavailable;
    if (!delivery->unavailable.empty()) delivery->counted_as = ParkReason::store_unavailable;
  }
  park(delivery);
}

}  // namespace bellhop
