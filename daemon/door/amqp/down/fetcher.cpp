#include "daemon/door/amqp/down/fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/door/amqp/log_about.h"
#include "daemon/ops/backoff.h"
#include "daemon/ops/trouble.h"
#include "daemon/pipeline/claim_headers.h"
#include "daemon/pipeline/deaths.h"
#include "daemon/pipeline/park.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

constexpr Backoff backoff{200, 10000};
constexpr uint64_t look_every_ms = 1000;
// A store that says nothing for so long is told of, and nothing that can go on without it waits for it.
constexpr uint64_t stalled_after_ms = 10000;
constexpr int64_t worn_from = 2;  // quorum queues: so many deliveries before this one

void read_claim_headers(Delivery& delivery) {
  auto header = proto::decode_content_header(delivery.header);
  if (!header) return;
  ClaimHeaders claim = claim_headers_of(header.value().header_fields(), delivery.key);
  if (!claim.are_there) return;
  delivery.strip_claim_headers = true;
  delivery.named_store = std::move(claim.store);
  delivery.expected = std::move(claim.expected);
}

// Held deliveries of one queue are logged as one trouble.
std::string held_subject(const Delivery& delivery) {
  return "queue " + delivery.queue;
}

bool is_pending(const std::shared_ptr<Delivery>& delivery) {
  return delivery->is(Delivery::State::queued) || delivery->is(Delivery::State::fetching);
}

// Each end of its channel counts as one more delivery, and a queue may drop it after few. Out of a parked
// queue, and forgotten by the broker, it is handed over as it stands: it could only be parked again.
bool may_not_wait(const Delivery& delivery) {
  auto header = proto::decode_content_header(delivery.header);
  const bool is_worn = header && delivery_count_of(header.value().header_fields()) >= worn_from;
  return is_worn || (delivery.no_ack && is_parked_queue(delivery.queue));
}

}  // namespace

Fetcher::Fetcher(const SessionState& state, SessionHost& host, Channels& channels, SessionMemory& memory,
                 TransferSlots& slots, std::shared_ptr<Executor> executor)
    : state_(state),
      host_(host),
      channels_(channels),
      memory_(memory),
      slots_(slots),
      executor_(std::move(executor)),
      jitter_(static_cast<uint32_t>(state.session_id * 2654435761U + 1)) {}

void Fetcher::accept(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  channel.queue_of(delivery->kind).push(delivery);
  // KeyRule::any is the widest rule: no store accepts a key that fails it.
  if (!proto::is_redeemable_key(delivery->key, proto::KeyRule::any)) {
    delivery->counted_as = ParkReason::bad_key;
    fail(delivery, proto::bad_key_reason(delivery->key));
    return;
  }
  if (delivery->kind != DeliveryKind::returned) read_claim_headers(*delivery);
  if (const std::string& named = delivery->named_store; !named.empty() && !may_ask(*delivery, named)) {
    fail(delivery, "claim " + delivery->key + ": the message names store '" + named +
                       "', which consume.stores does not list");
    return;
  }
  start(delivery);
}

void Fetcher::start(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = channels_.of(*delivery);
  if (channel == nullptr) return;
  // The front of a queue never waits for a place: those behind it may hold them all.
  const DeliveryQueue& queue = channel->queue_of(delivery->kind);
  const bool is_front = !queue.empty() && queue.front() == delivery;
  if (!is_front && slots_.is_full()) {
    delivery->wait_for_transfer(host_.now_ms());
    queued_.push_back(delivery);
    return;
  }
  delivery->fetch(slots_.take(), host_.now_ms());
  host_.wake_within(stalled_after_ms);
  ask(delivery);
}

void Fetcher::fail(const std::shared_ptr<Delivery>& delivery, const std::string& why) {
  delivery->fail(why);
  failed_.push_back(delivery);
}

// What bellhop stored itself comes back from where it went; whatever else a message claims comes only from
// the listed stores.
bool Fetcher::may_ask(const Delivery& delivery, const std::string& store) const {
  const std::vector<std::string>& listed = state_.config().consume_stores;
  return listed.empty() || delivery.stored.claim() ||
         std::find(listed.begin(), listed.end(), store) != listed.end();
}

std::vector<std::shared_ptr<ClaimStore>> Fetcher::order_of_stores(const Delivery& delivery) const {
  std::vector<std::shared_ptr<ClaimStore>> order;
  auto add = [&](const std::shared_ptr<ClaimStore>& store) {
    if (store != nullptr && may_ask(delivery, store->name()) &&
        std::find(order.begin(), order.end(), store) == order.end())
      order.push_back(store);
  };
  const Stores& stores = *state_.snapshot->stores;
  add(delivery.stored.store());
  if (!delivery.named_store.empty()) add(stores.find(delivery.named_store));
  add(stores.fallback());
  for (const auto& store : stores.all()) add(store);
  return order;
}

void Fetcher::ask(const std::shared_ptr<Delivery>& delivery) {
  if (const uint64_t now = state_.snapshot->generation; std::exchange(delivery->asked_by, now) != now) {
    delivery->next_store = 0;  // there may be other stores
    delivery->unavailable.clear();
  }
  const std::vector<std::shared_ptr<ClaimStore>> order = order_of_stores(*delivery);
  if (order.empty()) {
    hold(delivery, "claim " + delivery->key + ": no store is configured");
    return;
  }
  if (delivery->next_store == order.size()) {
    // A payload is missing only if every store is available and says so. The one that the message names may
    // have been taken out of the configuration by mistake.
    const std::string& named = delivery->named_store;
    if (delivery->unavailable.empty() && !named.empty() && state_.snapshot->stores->find(named) == nullptr)
      delivery->unavailable = "claim " + delivery->key + ": store '" + named + "' is not configured";
    if (!delivery->unavailable.empty()) {
      hold(delivery, delivery->unavailable);
    } else {
      fail(delivery, std::string(delivery->reason));
    }
    return;
  }
  delivery->store = order[delivery->next_store];
  delivery->store->fetch(delivery->key, delivery->expected, delivery->watch, executor_,
                         [this, weak = std::weak_ptr(delivery)](FetchResult result) {
                           auto alive = weak.lock();
                           if (alive != nullptr) fetched(alive, std::move(result));
                         });
}

void Fetcher::fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result) {
  if (channels_.of(*delivery) == nullptr || !delivery->is(Delivery::State::fetching)) return;
  last_piece_at_ms_ = host_.now_ms();
  if (result.object != nullptr) {
    if (logs(spdlog::level::debug)) tell_restored(*delivery, *result.object);
    delivery->take_object(std::move(result.object));
    if (delivery->was_held && has_trouble())
      trouble_over(trouble_delivery_held, held_subject(*delivery),
                   "deliveries that were held are handed over", {{"queue", delivery->queue}});
    return;
  }
  switch (result.failure.kind) {
    case FetchFailure::Kind::corrupt:
      delivery->counted_as = ParkReason::corrupt;
      fail(delivery, result.failure.reason);
      return;
    case FetchFailure::Kind::not_issued:
      if (delivery->reason.empty()) {
        delivery->reason = result.failure.reason;
        delivery->counted_as = ParkReason::bad_key;
      }
      break;
    case FetchFailure::Kind::missing:
      delivery->reason = result.failure.reason;
      delivery->counted_as = ParkReason::missing;
      break;
    case FetchFailure::Kind::unavailable:
      delivery->unavailable = result.failure.reason;
      break;
  }
  delivery->next_store++;
  ask(delivery);
}

// The store that gave it may be another than the message names.
void Fetcher::tell_restored(const Delivery& delivery, const LocalObject& object) const {
  LogFields fields = about(state_, delivery);
  fields.add({"from", delivery.store->name()});
  log_debug("payload restored", fields.add({"size", object.size_bytes()}));
}

void Fetcher::hold(const std::shared_ptr<Delivery>& delivery, const std::string& why) {
  const uint64_t now = host_.now_ms();
  delivery->wait_for_store(why);
  if (delivery->give_up_at_ms == 0) {
    delivery->give_up_at_ms = delivery->quiet_since_ms + state_.config().hold_max_ms;
    if (may_not_wait(*delivery)) {
      give_up(delivery);
      return;
    }
    tell_held(*delivery);
  }
  if (now >= delivery->give_up_at_ms) {
    give_up(delivery);
    return;
  }
  delivery->retry_at_ms =
      std::min(now + backoff.wait_ms(++delivery->failures, jitter_), delivery->give_up_at_ms);
  waiting_.push_back(delivery);
  host_.wake_within(delivery->retry_at_ms - now);
}

void Fetcher::give_up(const std::shared_ptr<Delivery>& delivery) {
  delivery->counted_as = ParkReason::store_unavailable;
  fail(delivery, "store unavailable: " + delivery->unavailable);
}

void Fetcher::tell_held(Delivery& delivery) const {
  delivery.was_held = true;
  delivery.held = CountLease(state_.meter.held);
  tell_trouble(trouble_delivery_held, held_subject(delivery), "delivery held",
               about(state_, delivery).add({"reason", delivery.unavailable}));
}

std::optional<uint64_t> Fetcher::tick() {
  const std::optional<uint64_t> retry_in_ms = retry(), look_in_ms = look_for_silence();
  if (!retry_in_ms || !look_in_ms) return retry_in_ms ? retry_in_ms : look_in_ms;
  return std::min(*retry_in_ms, *look_in_ms);
}

uint64_t Fetcher::patience_ms(const Delivery& delivery) const {
  if (may_not_wait(delivery)) return stalled_after_ms;
  return std::max<uint64_t>(state_.config().hold_max_ms, stalled_after_ms);
}

// A fetch is silent while its store has neither answered nor read a piece; one that waits for its turn, while
// that is so of all that the session fetches.
std::optional<uint64_t> Fetcher::look_for_silence() {
  const uint64_t now = host_.now_ms();
  if (memory_.leases(MemoryUse::delivery) == 0) return {};
  if (now < next_look_ms_) return next_look_ms_ - now;
  std::vector<std::shared_ptr<Delivery>> pending;
  for (const auto& channel : channels_.all()) {
    if (channel == nullptr) continue;
    for (const DeliveryQueue* queue : {&channel->deliveries, &channel->returns})
      std::copy_if(queue->begin(), queue->end(), std::back_inserter(pending), is_pending);
  }
  if (pending.empty()) return {};
  for (const auto& delivery : pending) {
    if (!delivery->is(Delivery::State::fetching)) continue;
    const uint32_t pieces = delivery->watch->pieces;
    if (pieces == std::exchange(delivery->pieces_seen, pieces)) continue;
    delivery->quiet_since_ms = last_piece_at_ms_ = now;
    delivery->is_stalled = false;
  }
  uint64_t next = look_every_ms;
  for (const auto& delivery : pending) {
    const bool is_queued = delivery->is(Delivery::State::queued);
    const uint64_t since =
        is_queued ? std::max(delivery->quiet_since_ms, last_piece_at_ms_) : delivery->quiet_since_ms;
    const uint64_t quiet_ms = now - since;
    const bool is_overdue = delivery->give_up_at_ms != 0 && now >= delivery->give_up_at_ms;
    const uint64_t patience = patience_ms(*delivery);
    if (quiet_ms >= patience || (is_overdue && quiet_ms >= stalled_after_ms)) {
      delivery->unavailable = fmt::format("claim {}: its store did not answer", delivery->key);
      give_up(delivery);
      continue;
    }
    next = std::min(next, patience - quiet_ms);
    if (is_queued || quiet_ms < stalled_after_ms || std::exchange(delivery->is_stalled, true)) continue;
    delivery->unavailable =
        fmt::format("claim {}: its store has not answered for {} s", delivery->key, quiet_ms / 1000);
    tell_held(*delivery);
  }
  next_look_ms_ = now + next;
  return next;
}

std::optional<uint64_t> Fetcher::retry() {
  const uint64_t now = host_.now_ms();
  std::optional<uint64_t> next;
  for (auto& weak : std::exchange(waiting_, {})) {
    auto delivery = weak.lock();
    if (delivery == nullptr || !delivery->is(Delivery::State::waiting) || channels_.of(*delivery) == nullptr)
      continue;
    if (now >= delivery->retry_at_ms) {
      start(delivery);
      continue;
    }
    next = std::min(next.value_or(UINT64_MAX), delivery->retry_at_ms - now);
    waiting_.push_back(std::move(weak));
  }
  return next;
}

void Fetcher::pump() {
  while (!queued_.empty() && !slots_.is_full()) {
    auto next = queued_.front().lock();
    queued_.pop_front();
    if (next != nullptr && next->is(Delivery::State::queued)) start(next);
  }
}

}  // namespace bellhop
