#include "daemon/door/amqp/lanes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/deliverer.h"
#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/undeliverable.h"

namespace bellhop {

namespace {

bool is_of_consumer(const Delivery& delivery, const std::string& consumer_tag) {
  return delivery.kind == DeliveryKind::deliver && delivery.consumer_tag == consumer_tag;
}

// The broker would give it to somebody else if its consumer ended now.
bool is_undelivered(const Delivery& delivery) {
  return delivery.kind == DeliveryKind::deliver && !delivery.no_ack && !delivery.open &&
         delivery.state != Delivery::State::parking;
}

}  // namespace

void Lanes::push(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery) {
  core_.take_for_client(channel, delivery->held_bytes());
  lane.push_back(std::move(delivery));
  core_.lane_entries++;
}

void Lanes::push_frames(Channel& channel, DeliveryKind kind, Bytes frames, const std::string& consumer_tag) {
  auto entry = std::make_shared<Delivery>();
  entry->channel = channel.id;
  entry->generation = channel.generation;
  entry->kind = kind;
  entry->no_ack = true;
  entry->consumer_tag = consumer_tag;
  put(entry->frames, frames);
  push(channel, channel.lane(kind), std::move(entry));
}

bool Lanes::waits_behind_returns(Channel& channel, Bytes frames) {
  if (channel.returns.empty()) return false;
  push_frames(channel, DeliveryKind::returned, frames);
  return true;
}

void Lanes::take_out(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  Lane& lane = channel.lane(delivery->kind);
  auto at = std::find(lane.begin(), lane.end(), delivery);
  if (at == lane.end()) return;
  uncount(channel, *delivery);
  lane.erase(at);
}

void Lanes::make_plain(Channel& channel, const std::shared_ptr<Delivery>& delivery, Buffer frames) {
  Lane& lane = channel.lane(delivery->kind);
  const bool in_lane = std::find(lane.begin(), lane.end(), delivery) != lane.end();
  if (in_lane) core_.give_back_for_client(channel, delivery->held_bytes());
  delivery->frames = std::move(frames);
  delivery->method = delivery->header = delivery->body = {};
  delivery->state = Delivery::State::plain;
  if (in_lane) {
    core_.take_for_client(channel, delivery->held_bytes());
  } else {
    push(channel, lane, delivery);
  }
}

void Lanes::pump(Channel& channel) {
  if (!pump_lane(channel, channel.returns) || !channel.returns.empty()) return;
  if (channel.state == Channel::State::open || channel.state == Channel::State::client_closing)
    pump_lane(channel, channel.deliveries);
  if (channel.untold) hand_late(channel);
}

// The broker has closed the channel: what stood behind a return still goes to the client, what is not there
// yet does not.
void Lanes::hand_late(Channel& channel) {
  Lane& lane = channel.deliveries;
  while (!lane.empty() && !core_.writer->is_busy() && lane.front()->state == Delivery::State::plain &&
         !lane.front()->open && !lane.front()->settle_when_handed)
    hand_plain(channel, lane);
}

// A close waits for a return that is being restored, not for a store that cannot be reached.
bool Lanes::is_given_up(const Channel& channel, const Delivery& delivery) const {
  return delivery.kind == DeliveryKind::returned && delivery.waits_for_store() &&
         (channel.state != Channel::State::open || core_.closing);
}

// False: the writer is busy, or the client must read something first.
bool Lanes::pump_lane(Channel& channel, Lane& lane) {
  while (!lane.empty()) {
    if (core_.writer->is_busy()) return false;
    std::shared_ptr<Delivery> front = lane.front();
    if (core_.draining && is_undelivered(*front)) {
      // Not begun, nor waited for: the broker has it back when the connection ends.
      front->state = Delivery::State::settled;
      pop(channel, lane);
      continue;
    }
    if (is_given_up(channel, *front)) {
      spdlog::warn(
          "session={} channel={} key={} a returned message is not handed over, since its channel closes; its "
          "payload stays in the store: {}",
          core_.session_id, channel.id, front->key,
          front->reason.empty() ? front->unavailable : front->reason);
      pop(channel, lane);
      continue;
    }
    switch (front->state) {
      case Delivery::State::settled:
        pop(channel, lane);
        break;
      case Delivery::State::queued:
        core_.fetcher->start(front);
        return true;
      case Delivery::State::spilled:
        core_.spill->bring_back(lane);
        return true;
      case Delivery::State::plain:
      case Delivery::State::ready:
        if (front->state == Delivery::State::plain) {
          hand_plain(channel, lane);
        } else {
          if (core_.body_stream->is_yielding() || !core_.body_stream->has_room()) return false;
          next_channel_ = size_t{channel.id} + 1;
          core_.body_stream->begin(channel, front);
        }
        break;
      default:
        return true;
    }
  }
  return true;
}

void Lanes::hand_plain(Channel& channel, Lane& lane) {
  std::shared_ptr<Delivery> front = lane.front();
  put(core_.writer->content(), front->frames);
  pop(channel, lane);
  if (front->open) {
    // It was the last of its lane: bellhop relays the rest of its frames directly.
    core_.writer->begin_content();
    channel.out.queued = false;
    return;
  }
  core_.deliverer->handed(channel, front->kind, front->tag, front->no_ack, front->settle_when_handed,
                          front->client_tag);
}

void Lanes::streamed(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  Lane& lane = channel.lane(delivery->kind);
  if (lane.empty() || lane.front() != delivery) return;
  pop(channel, lane);
  core_.deliverer->handed(channel, delivery->kind, delivery->tag, delivery->no_ack,
                          delivery->settle_when_handed, delivery->client_tag);
}

void Lanes::pop(Channel& channel, Lane& lane) {
  core_.fetcher->free_slot(*lane.front());
  uncount(channel, *lane.front());
  lane.pop_front();
}

void Lanes::resume() {
  if (core_.body_stream->is_streaming()) {
    core_.body_stream->read_more();
    if (core_.body_stream->is_streaming()) return;
  }
  if (core_.lane_entries == 0) return;
  const size_t count = core_.channels().size(), first = next_channel_;
  for (size_t i = 0; i < count && !core_.writer->is_busy(); ++i) {
    Channel* channel = core_.channels()[(first + i) % count].get();
    if (channel != nullptr && !(channel->deliveries.empty() && channel->returns.empty())) pump(*channel);
  }
}

void Lanes::recover(Channel& channel) {
  Lane kept;
  for (auto& delivery : channel.deliveries) {
    bool stays = delivery->no_ack || delivery->kind == DeliveryKind::get_ok || delivery->open ||
                 delivery->state == Delivery::State::parking || core_.body_stream->is_of(delivery);
    if (stays) {
      // Its tag is the broker's again: nothing is acknowledged for it any more.
      delivery->no_ack = true;
      kept.push_back(std::move(delivery));
      continue;
    }
    core_.fetcher->free_slot(*delivery);
    uncount(channel, *delivery);
  }
  channel.deliveries = std::move(kept);
  channel.tags.clear();
}

bool Lanes::end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw) {
  Lane& lane = channel.deliveries;
  auto is_its = [&](const std::shared_ptr<Delivery>& delivery) {
    return is_of_consumer(*delivery, consumer_tag);
  };
  auto last = std::find_if(lane.rbegin(), lane.rend(), is_its).base();
  if (last == lane.begin()) return false;
  bool held =
      std::any_of(lane.begin(), last, [](const auto& delivery) { return delivery->waits_for_store(); });
  push_frames(channel, DeliveryKind::notice, raw, consumer_tag);
  if (held) release_notices(channel);
  return true;
}

void Lanes::release_notices(Channel& channel) {
  Lane& lane = channel.deliveries;
  for (;;) {
    auto at = std::find_if(lane.begin(), lane.end(),
                           [](const auto& delivery) { return delivery->kind == DeliveryKind::notice; });
    if (at == lane.end()) return;
    std::shared_ptr<Delivery> notice = *at;
    uncount(channel, *notice);
    lane.erase(at);
    give_back(channel, notice->consumer_tag);
    if (!waits_behind_returns(channel, notice->frames)) put(core_.writer->own(), notice->frames);
  }
}

// What a consumer that is gone was not handed is its queue's again, or parked where the broker has forgotten
// it.
void Lanes::give_back(Channel& channel, const std::string& consumer_tag) {
  using State = Delivery::State;
  Lane kept, unhanded;
  Lane lane = std::exchange(channel.deliveries, {});
  for (auto& delivery : lane) {
    bool its = is_of_consumer(*delivery, consumer_tag);
    if (!its || delivery->no_ack || delivery->state == State::parking || delivery->state == State::settled ||
        core_.body_stream->is_of(delivery)) {
      if (its && delivery->no_ack) unhanded.push_back(delivery);
      kept.push_back(std::move(delivery));
      continue;
    }
    core_.fetcher->free_slot(*delivery);
    delivery->state = State::settled;
    core_.own_settles->settle(channel, delivery->tag, true, true);
    uncount(channel, *delivery);
  }
  channel.deliveries = std::move(kept);
  for (const auto& delivery : unhanded) core_.undeliverable->park_unhanded(channel, delivery);
}

void Lanes::drop(Channel& channel, Lane& lane) {
  for (auto& delivery : lane) {
    uncount(channel, *delivery);
    if (!core_.body_stream->is_of(delivery)) core_.fetcher->free_slot(*delivery);
  }
  lane.clear();
}

void Lanes::uncount(Channel& channel, const Delivery& delivery) {
  core_.give_back_for_client(channel, delivery.held_bytes());
  core_.lane_entries--;
}

}  // namespace bellhop
