#include "daemon/door/amqp/restorer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/door/amqp/downward.h"
#include "daemon/door/amqp/parks.h"
#include "daemon/pipeline/park.h"
#include "daemon/pipeline/stamp.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr size_t read_bytes = 512 * 1024;
constexpr size_t outbox_bytes_max = 1024 * 1024;
constexpr uint32_t backoff_first_ms = 200, backoff_max_ms = 10000;

bool keep_foreign(const void*, std::string_view name) {
  return !is_claim_header(name);
}

bool has_header(Bytes header_payload, std::string_view name) {
  auto header = proto::decode_content_header(header_payload);
  if (!header) return false;
  proto::TableCursor cursor(header.value().header_fields());
  while (auto field = cursor.next()) {
    if (field->name == name) return true;
  }
  return false;
}

// bellhop's own headers count only if their key is the body's: consumers copy headers onto other messages.
void read_claim_headers(Delivery& delivery) {
  auto header = proto::decode_content_header(delivery.header);
  if (!header) return;
  std::string_view key, store, xxh128;
  std::optional<int64_t> size;
  proto::TableCursor cursor(header.value().header_fields());
  while (auto field = cursor.next()) {
    if (field->name == claim_key_header) key = proto::field_string(*field).value_or(std::string_view{});
    if (field->name == claim_store_header) store = proto::field_string(*field).value_or(std::string_view{});
    if (field->name == claim_size_header) size = proto::field_integer(*field);
    if (field->name == claim_xxh128_header) xxh128 = proto::field_string(*field).value_or(std::string_view{});
  }
  if (key != delivery.key) return;
  delivery.strip_claim_headers = true;
  delivery.named_store = store;
  if (size && *size >= 0) delivery.expected.size_bytes = static_cast<uint64_t>(*size);
  if (!xxh128.empty()) delivery.expected.xxh128 = std::string(xxh128);
}

// The broker would give it to somebody else if its consumer ended now.
bool is_undelivered(const Delivery& delivery) {
  return delivery.kind == DeliveryKind::deliver && !delivery.no_ack && !delivery.open &&
         delivery.state != Delivery::State::parking;
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

}  // namespace

Restorer::Restorer(SessionCore& core)
    : core_(core), jitter_(static_cast<uint32_t>(core.session_id * 2654435761U + 1)) {}

void Restorer::push(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery) {
  core_.take(&channel, delivery->held_bytes());
  lane.push_back(std::move(delivery));
  core_.lane_entries++;
}

void Restorer::accept(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery) {
  push(channel, lane, delivery);
  if (!proto::is_redeemable_key(delivery->key)) {
    fail(delivery, proto::bad_key_reason(delivery->key));
    pump(channel);
    return;
  }
  if (delivery->kind != DeliveryKind::returned) read_claim_headers(*delivery);
  start(delivery);
}

// --- fetching ---

void Restorer::start(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = channel_of(*delivery);
  if (channel == nullptr) return;
  // The front of a lane never waits for a place: those behind it may hold them all.
  Lane& lane = delivery->kind == DeliveryKind::returned ? channel->returns : channel->deliveries;
  bool is_front = !lane.empty() && lane.front() == delivery;
  if (!is_front && core_.transfers >= core_.config.limits.transfers_per_session) {
    delivery->state = Delivery::State::queued;
    queued_.push_back(delivery);
    return;
  }
  delivery->holds_slot = true;
  core_.transfers++;
  delivery->next_store = 0;
  delivery->unavailable.clear();
  delivery->reason.clear();
  delivery->state = Delivery::State::fetching;
  ask(delivery);
}

std::vector<ClaimStore*> Restorer::order_of_stores(const Delivery& delivery) const {
  std::vector<ClaimStore*> order;
  auto add = [&](ClaimStore* store) {
    if (store != nullptr && std::find(order.begin(), order.end(), store) == order.end())
      order.push_back(store);
  };
  const Stores& stores = *core_.shared.stores;
  if (!delivery.named_store.empty()) add(stores.find(delivery.named_store));
  add(stores.fallback());
  for (const auto& store : stores.all()) add(store.get());
  return order;
}

void Restorer::ask(const std::shared_ptr<Delivery>& delivery) {
  std::vector<ClaimStore*> order = order_of_stores(*delivery);
  if (order.empty()) {
    wait(delivery, "claim " + delivery->key + ": no store is configured");
    return;
  }
  if (delivery->next_store == order.size()) {
    // Missing needs all stores available and all saying no.
    if (!delivery->unavailable.empty()) {
      wait(delivery, delivery->unavailable);
    } else {
      fail(delivery, delivery->reason);
    }
    return;
  }
  order[delivery->next_store]->fetch(delivery->key, delivery->expected, core_.mailbox,
                                     [this, weak = std::weak_ptr(delivery)](FetchResult result) {
                                       auto alive = weak.lock();
                                       if (alive != nullptr) fetched(alive, std::move(result));
                                     });
}

void Restorer::fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result) {
  Channel* channel = channel_of(*delivery);
  if (channel == nullptr || delivery->state != Delivery::State::fetching) return;
  if (result.object != nullptr) {
    delivery->object = std::move(result.object);
    delivery->state = Delivery::State::ready;
    pump(*channel);
    return;
  }
  switch (result.failure.kind) {
    case FetchFailure::Kind::corrupt:
      fail(delivery, result.failure.reason);
      return;
    case FetchFailure::Kind::missing:
      delivery->reason = result.failure.reason;
      break;
    case FetchFailure::Kind::unavailable:
      delivery->unavailable = result.failure.reason;
      break;
  }
  delivery->next_store++;
  ask(delivery);
}

void Restorer::wait(const std::shared_ptr<Delivery>& delivery, const std::string& why) {
  uint64_t now = core_.now_ms();
  if (delivery->give_up_at_ms == 0) {
    delivery->give_up_at_ms = now + core_.config.hold_max_ms;
    spdlog::warn("session={} channel={} delivery held reason=\"{}\"", core_.session_id, delivery->channel,
                 why);
  }
  free_slot(*delivery);
  delivery->state = Delivery::State::waiting;
  delivery->unavailable = why;
  delivery->backoff_ms = std::min(std::max(delivery->backoff_ms * 2, backoff_first_ms), backoff_max_ms);
  delivery->retry_at_ms = now + delivery->backoff_ms / 2 + jitter_() % (delivery->backoff_ms / 2 + 1);
  waiting_.push_back(delivery);
  core_.on_tick_wanted(delivery->retry_at_ms - now);
  if (Channel* channel = channel_of(*delivery)) release_notices(*channel);
}

std::optional<uint64_t> Restorer::tick() {
  uint64_t now = core_.now_ms();
  std::optional<uint64_t> next;
  std::deque<std::weak_ptr<Delivery>> due;
  due.swap(waiting_);
  for (auto& weak : due) {
    auto delivery = weak.lock();
    if (delivery == nullptr || delivery->state != Delivery::State::waiting) continue;
    Channel* channel = channel_of(*delivery);
    if (channel == nullptr) continue;
    if (now >= delivery->give_up_at_ms) {
      // Never a requeue: a quorum queue drops or dead-letters after its delivery limit. The broker has it
      // back when the channel ends.
      core_.close_channel(*channel, 541,
                          "INTERNAL_ERROR - consume.hold_max is over: " + delivery->unavailable);
      if (channel->state == Channel::State::open) {
        waiting_.push_back(weak);  // a publish is half out: the close comes at its end
        next = 100;
      }
      continue;
    }
    if (now >= delivery->retry_at_ms) {
      if (delivery->permanent) {
        park(delivery);
      } else {
        start(delivery);
      }
      continue;
    }
    waiting_.push_back(weak);
    next = std::min(next.value_or(UINT64_MAX), delivery->retry_at_ms - now);
  }
  return next;
}

// --- permanent failures ---

void Restorer::fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason) {
  Channel* channel = channel_of(*delivery);
  if (channel == nullptr) return;
  free_slot(*delivery);
  spdlog::error("session={} channel={} queue={} delivery cannot be restored reason=\"{}\"", core_.session_id,
                delivery->channel, delivery->queue, reason);
  delivery->reason = reason;
  delivery->permanent = true;
  if (delivery->kind == DeliveryKind::returned) {
    core_.close_channel(*channel, 541, "INTERNAL_ERROR - a returned message cannot be restored: " + reason);
    return;
  }
  if (has_header(delivery->header, "x-stream-offset")) {
    spdlog::error("session={} channel={} stream={} message skipped: a stream's message cannot be parked",
                  core_.session_id, delivery->channel, delivery->queue);
    settle(delivery);
    return;
  }
  if (core_.config.undeliverable_reject && !delivery->no_ack) {
    settle_own(*channel, delivery->tag, true);
    delivery->tag = 0;
    settle(delivery);
    return;
  }
  park(delivery);
}

void Restorer::park(const std::shared_ptr<Delivery>& delivery) {
  delivery->state = Delivery::State::parking;
  parking_++;
  core_.parks->park(*delivery, delivery->reason, [this, delivery](const std::string& failure) {
    parking_--;
    if (channel_of(*delivery) == nullptr && !failure.empty()) {
      spdlog::error("session={} queue={} message not parked, {}: {}", core_.session_id, delivery->queue,
                    delivery->no_ack ? "it is lost" : "the broker has it back", failure);
      return;
    }
    if (failure.empty()) {
      spdlog::warn("session={} channel={} queue={} message parked reason=\"{}\"", core_.session_id,
                   delivery->channel, delivery->queue, delivery->reason);
      settle(delivery);
    } else {
      wait(delivery, failure);
    }
  });
}

// Nothing is left to do for it but the acknowledgement of the original.
void Restorer::settle(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = channel_of(*delivery);
  if (channel == nullptr) return;
  delivery->state = Delivery::State::settled;
  if (!delivery->no_ack && channel->tags.owner(delivery->tag) == TagWindow::Owner::bellhop) {
    settle_own(*channel, delivery->tag);
  }
  // The client waits for an answer to its get: there is nothing for it.
  if (delivery->kind == DeliveryKind::get_ok) {
    proto::put_empty_method(core_.writer->own(), proto::method::basic_get_empty, channel->id, 1);
  }
  pump(*channel);
}

// --- towards the client ---

void Restorer::pump(Channel& channel) {
  if (channel.state != Channel::State::open && channel.state != Channel::State::client_closing) return;
  if (pump_lane(channel, channel.returns)) pump_lane(channel, channel.deliveries);
}

// False: the writer is taken.
bool Restorer::pump_lane(Channel& channel, Lane& lane) {
  while (!lane.empty()) {
    if (core_.writer->is_busy()) return false;
    std::shared_ptr<Delivery> front = lane.front();
    if (core_.draining && is_undelivered(*front)) {
      // Not begun, nor waited for: the broker has it back when the connection ends.
      front->state = Delivery::State::settled;
      pop(channel, lane);
      continue;
    }
    switch (front->state) {
      case Delivery::State::settled:
        pop(channel, lane);
        break;
      case Delivery::State::queued:
        start(front);
        return true;
      case Delivery::State::plain:
      case Delivery::State::ready:
        if (front->state == Delivery::State::plain) {
          hand_plain(channel, lane);
        } else {
          if (yields_) return false;
          next_channel_ = size_t{channel.id} + 1;
          begin_stream(channel, front);
        }
        break;
      default:
        return true;
    }
  }
  return true;
}

void Restorer::hand_plain(Channel& channel, Lane& lane) {
  std::shared_ptr<Delivery> front = lane.front();
  put(core_.writer->content(), front->frames);
  pop(channel, lane);
  if (front->open) {
    // It was the last of its lane: the rest of its frames goes on directly.
    core_.writer->begin_content();
    channel.out.queued = false;
    return;
  }
  core_.downward->handed(channel, front->kind, front->tag, front->no_ack, front->settle_when_handed,
                         front->client_tag);
}

void Restorer::pop(Channel& channel, Lane& lane) {
  free_slot(*lane.front());
  core_.give_back(&channel, lane.front()->held_bytes());
  lane.pop_front();
  core_.lane_entries--;
}

void Restorer::begin_stream(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  core_.writer->begin_content();
  Buffer& out = core_.writer->content();
  proto::put_frame(out, proto::frame_method, channel.id, delivery->method);
  auto header = proto::decode_content_header(delivery->header);
  proto::HeaderEdits edits;
  edits.body_bytes = delivery->object->size_bytes();
  if (delivery->strip_claim_headers) {
    edits.keep = keep_foreign;
    edits.drop_emptied_table = header && had_no_table(header.value().header_fields());
  }
  if (!header || !proto::put_content_header(out, channel.id, header.value(), edits, core_.frame_bytes_max)) {
    // The table cannot be walked: it stays whole, only the size is the payload's.
    Buffer patched = delivery->header;
    store_u64(patched.data() + 4, delivery->object->size_bytes());
    proto::put_frame(out, proto::frame_header, channel.id, patched);
  }
  stream_ = Stream{delivery, 0, false};
  if (const Buffer* whole = delivery->object->in_memory()) {
    proto::put_body_frames(out, channel.id, *whole, core_.frame_bytes_max);
    end_stream();
    return;
  }
  read_more();
}

void Restorer::read_more() {
  if (!stream_ || stream_->reading) return;
  uint64_t size = stream_->delivery->object->size_bytes();
  if (stream_->offset == size) {
    end_stream();
    return;
  }
  if (core_.client_gone || core_.client->outbox().pending() > outbox_bytes_max) return;
  // Whole frames, but for the last.
  size_t frame_payload_bytes = core_.frame_bytes_max - proto::frame_overhead_bytes;
  size_t piece_bytes = std::max<size_t>(read_bytes / frame_payload_bytes, 1) * frame_payload_bytes;
  size_t count = static_cast<size_t>(std::min<uint64_t>(piece_bytes, size - stream_->offset));
  stream_->reading = true;
  stream_->delivery->object->read(
      stream_->offset, count, core_.mailbox,
      [this, weak = std::weak_ptr(stream_->delivery)](Result<Buffer> piece) {
        auto alive = weak.lock();
        if (alive == nullptr || !stream_ || stream_->delivery != alive) return;
        stream_->reading = false;
        if (!piece) {
          core_.close_connection(
              541, "INTERNAL_ERROR - a payload broke off while it was handed over: " + piece.error());
          return;
        }
        proto::put_body_frames(core_.writer->content(), alive->channel, piece.value(), core_.frame_bytes_max);
        stream_->offset += piece.value().size();
        read_more();
      });
}

void Restorer::end_stream() {
  std::shared_ptr<Delivery> delivery = std::move(stream_->delivery);
  stream_.reset();
  yields_ = delivery->object->in_memory() == nullptr;
  core_.writer->end_content();
  free_slot(*delivery);
  if (delivery->kind == DeliveryKind::returned) delivery->transaction.undo();
  Channel* channel = channel_of(*delivery);
  if (channel == nullptr) return;
  Lane& lane = delivery->kind == DeliveryKind::returned ? channel->returns : channel->deliveries;
  if (lane.empty() || lane.front() != delivery) return;
  pop(*channel, lane);
  core_.downward->handed(*channel, delivery->kind, delivery->tag, delivery->no_ack,
                         delivery->settle_when_handed, delivery->client_tag);
}

void Restorer::cancel_stream() {
  if (!stream_) return;
  free_slot(*stream_->delivery);
  stream_.reset();
}

void Restorer::resume() {
  if (stream_) {
    read_more();
    if (stream_) return;
  }
  if (core_.lane_entries == 0) return;
  const size_t count = core_.channels().size(), first = next_channel_;
  for (size_t i = 0; i < count && !core_.writer->is_busy(); ++i) {
    Channel* channel = core_.channels()[(first + i) % count].get();
    if (channel != nullptr && !(channel->deliveries.empty() && channel->returns.empty())) pump(*channel);
  }
}

// --- ends ---

void Restorer::free_slot(Delivery& delivery) {
  if (!delivery.holds_slot) return;
  delivery.holds_slot = false;
  core_.transfers--;
  while (!queued_.empty() && core_.transfers < core_.config.limits.transfers_per_session) {
    auto next = queued_.front().lock();
    queued_.pop_front();
    if (next != nullptr && next->state == Delivery::State::queued) start(next);
  }
}

void Restorer::recover(Channel& channel) {
  Lane kept;
  for (auto& delivery : channel.deliveries) {
    bool stays = delivery->no_ack || delivery->kind == DeliveryKind::get_ok || delivery->open ||
                 delivery->state == Delivery::State::parking || is_half_out(delivery);
    if (stays) {
      // Its tag is the broker's again: nothing is acknowledged for it any more.
      delivery->no_ack = true;
      kept.push_back(std::move(delivery));
      continue;
    }
    free_slot(*delivery);
    core_.give_back(&channel, delivery->held_bytes());
    core_.lane_entries--;
  }
  channel.deliveries = std::move(kept);
  channel.tags.clear();
}

void Restorer::give_up_held(Channel& channel) {
  for (auto& delivery : channel.deliveries) {
    if (delivery->no_ack && delivery->kind == DeliveryKind::deliver && !delivery->open)
      park_unhanded(channel, delivery);
  }
}

// The broker has forgotten it, and its client will not be handed it.
void Restorer::park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  using State = Delivery::State;
  if (delivery->state == State::parking || delivery->state == State::settled || is_half_out(delivery)) return;
  free_slot(*delivery);
  core_.give_back(&channel, delivery->held_bytes());
  if (delivery->state == State::plain) unframe(*delivery);
  core_.take(&channel, delivery->held_bytes());
  delivery->permanent = true;
  if (delivery->reason.empty()) delivery->reason = delivery->unavailable;
  if (delivery->reason.empty()) delivery->reason = "its consumer ended before it could be handed over";
  park(delivery);
}

// --- a consumer's end ---

bool Restorer::end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw) {
  Lane& lane = channel.deliveries;
  auto is_its = [&](const std::shared_ptr<Delivery>& delivery) {
    return delivery->kind == DeliveryKind::deliver && delivery->consumer_tag == consumer_tag;
  };
  auto last = std::find_if(lane.rbegin(), lane.rend(), is_its).base();
  if (last == lane.begin()) return false;
  auto notice = std::make_shared<Delivery>();
  notice->channel = channel.id;
  notice->generation = channel.generation;
  notice->kind = DeliveryKind::notice;
  notice->no_ack = true;
  notice->consumer_tag = consumer_tag;
  put(notice->frames, raw);
  push(channel, lane, std::move(notice));
  bool held = std::any_of(lane.begin(), last,
                          [](const auto& delivery) { return delivery->state == Delivery::State::waiting; });
  if (held) release_notices(channel);
  return true;
}

// Something of the lane may be held for long: no consumer's end waits for it.
void Restorer::release_notices(Channel& channel) {
  Lane& lane = channel.deliveries;
  for (;;) {
    auto at = std::find_if(lane.begin(), lane.end(),
                           [](const auto& delivery) { return delivery->kind == DeliveryKind::notice; });
    if (at == lane.end()) return;
    std::shared_ptr<Delivery> notice = *at;
    core_.give_back(&channel, notice->held_bytes());
    core_.lane_entries--;
    lane.erase(at);
    give_back(channel, notice->consumer_tag);
    put(core_.writer->own(), notice->frames);
  }
}

// What a consumer that is gone was not handed is its queue's again, or parked where the broker has forgotten
// it.
void Restorer::give_back(Channel& channel, const std::string& consumer_tag) {
  using State = Delivery::State;
  Lane kept;
  Lane lane = std::exchange(channel.deliveries, {});
  for (auto& delivery : lane) {
    bool its = delivery->kind == DeliveryKind::deliver && delivery->consumer_tag == consumer_tag;
    if (!its || delivery->no_ack || delivery->state == State::parking || delivery->state == State::settled ||
        is_half_out(delivery)) {
      if (its && delivery->no_ack) park_unhanded(channel, delivery);
      kept.push_back(std::move(delivery));
      continue;
    }
    free_slot(*delivery);
    delivery->state = State::settled;
    settle_own(channel, delivery->tag, true, true);
    core_.give_back(&channel, delivery->held_bytes());
    core_.lane_entries--;
  }
  channel.deliveries = std::move(kept);
}

void Restorer::settle_own(Channel& channel, uint64_t tag, bool reject, bool requeue) {
  Buffer& out = core_.to_broker(channel);
  if (reject) {
    proto::put_reject(out, channel.id, tag, requeue);
  } else {
    proto::put_ack(out, channel.id, tag, false);
  }
  channel.tags.settle_own(tag);
  if (!channel.tx) return;
  channel.own_settles.push_back({tag, reject, requeue});
  commit_own(channel);
}

void Restorer::settle_again(Channel& channel) {
  auto again = std::exchange(channel.own_settles, {});
  for (const Channel::OwnSettle& own : again) settle_own(channel, own.tag, own.reject, own.requeue);
}

// With nothing of the client's in it a transaction is bellhop's to commit.
void Restorer::commit_own(Channel& channel) {
  bool relaying = channel.in.stage == PublishAssembly::Stage::relaying && channel.queue.empty();
  if (channel.own_settles.empty() || channel.tx_dirty || relaying) return;
  proto::put_empty_method(core_.broker->outbox().tail(), proto::method::tx_commit, channel.id);
  channel.own_settles.clear();
  channel.tx_ends_awaited.push_back({true, 0});
}

void Restorer::abandon(Channel& channel) {
  for (Lane* lane : {&channel.returns, &channel.deliveries}) {
    for (auto& delivery : *lane) {
      core_.give_back(&channel, delivery->held_bytes());
      if (!is_half_out(delivery)) free_slot(*delivery);
    }
    core_.lane_entries -= lane->size();
    lane->clear();
  }
  if (channel.out.stage == DeliveryAssembly::Stage::collecting) {
    core_.give_back(&channel, channel.out.start.size());
    core_.collecting--;
  }
  bool half_out = channel.out.stage == DeliveryAssembly::Stage::relaying && !channel.out.queued;
  if (!half_out && channel.out.stage != DeliveryAssembly::Stage::idle) {
    channel.out.stage = DeliveryAssembly::Stage::dropping;
    channel.out.start.clear();
  }
  channel.tags.clear();
}

}  // namespace bellhop
