#include "daemon/door/amqp/down/delivery_pump.h"

#include <algorithm>
#include <utility>

#include "daemon/door/amqp/log_about.h"
#include "daemon/door/amqp/tap_lines.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

using State = Delivery::State;

bool is_of_consumer(const Delivery& delivery, const std::string& consumer_tag) {
  return delivery.kind == DeliveryKind::deliver && delivery.consumer_tag == consumer_tag;
}

// The broker would give it to somebody else if its consumer ended now.
bool is_undelivered(const Delivery& delivery) {
  return delivery.kind == DeliveryKind::deliver && !delivery.no_ack && !delivery.open &&
         !delivery.is(State::parking);
}

auto first_notice(const DeliveryQueue& queue) {
  return std::find_if(queue.begin(), queue.end(),
                      [](const auto& delivery) { return delivery->kind == DeliveryKind::notice; });
}

// A consumer's end stands behind a delivery that may be held for long.
bool has_held_consumer_end(const DeliveryQueue& queue) {
  if (queue.notices() == 0) return false;
  return std::any_of(queue.begin(), first_notice(queue),
                     [](const auto& delivery) { return delivery->waits_for_store(); });
}

}  // namespace

void DeliveryPump::pump() {
  if (body_stream_.is_streaming()) pump_stream();
  for (bool again = true; again;) {
    take_failed();
    const size_t count = memory_.leases(MemoryUse::delivery) == 0 ? 0 : channels_.all().size();
    const size_t first = next_channel_;
    for (size_t i = 0; i < count && !to_client_.is_busy(); ++i) {
      Channel* channel = channels_.all()[(first + i) % count].get();
      if (channel != nullptr) pump_channel(*channel);
    }
    // What was handed over gave its transfer's place back.
    fetcher_.pump();
    again = fetcher_.has_failed();
  }
}

void DeliveryPump::pump(Channel& channel) {
  take_failed();
  pump_channel(channel);
  if (!channel.deliveries.empty()) spill_.consider(channel.deliveries.back());
}

// What was streamed to its end is the client's before anything else is written.
void DeliveryPump::pump_stream() {
  const std::shared_ptr<Delivery> streamed = body_stream_.delivery();
  body_stream_.pump();
  Channel* channel = channels_.of(*streamed);
  if (channel == nullptr || !streamed->is(State::handed)) return;
  DeliveryQueue& queue = channel->queue_of(streamed->kind);
  if (!queue.empty() && queue.front() == streamed) take_handed(*channel, queue);
}

void DeliveryPump::take_handed(Channel& channel, DeliveryQueue& queue) {
  const std::shared_ptr<Delivery> front = queue.front();
  queue.pop_front();
  handover_.handed(channel, DeliveryPath::restored, front->kind, front->tag, front->no_ack,
                   front->settle_when_handed, front->client_tag);
}

void DeliveryPump::pump_channel(Channel& channel) {
  if (!channel.has_queued_deliveries()) return;
  pump_queues(channel);
  if (!has_held_consumer_end(channel.deliveries)) return;
  end_held_consumers(channel);
  pump_queues(channel);
}

void DeliveryPump::pump_queues(Channel& channel) {
  if (!pump_queue(channel, channel.returns) || !channel.returns.empty()) return;
  if (channel.end.is_served()) pump_queue(channel, channel.deliveries);
  if (channel.end.is_untold()) hand_late(channel);
}

void DeliveryPump::take_failed() {
  if (!fetcher_.has_failed()) return;
  for (const auto& delivery : fetcher_.take_failed()) undeliverable_.take(delivery);
}

// bellhop has closed the channel: what stood behind a return still goes to the client, what is not there yet
// does not.
void DeliveryPump::hand_late(Channel& channel) {
  DeliveryQueue& queue = channel.deliveries;
  while (!queue.empty() && !to_client_.is_busy() && queue.front()->is(State::plain) && !queue.front()->open &&
         !queue.front()->settle_when_handed)
    hand_plain(channel, queue);
}

// A close waits for a return that is being restored, not for a store that cannot be reached.
bool DeliveryPump::is_given_up(const Channel& channel, const Delivery& delivery) const {
  return delivery.kind == DeliveryKind::returned && delivery.waits_for_store() &&
         (!channel.end.is_open() || state_.closing);
}

// False: the writer is busy, or the client must read something first.
bool DeliveryPump::pump_queue(Channel& channel, DeliveryQueue& queue) {
  while (!queue.empty()) {
    const std::shared_ptr<Delivery> front = queue.front();
    if (front->is(State::handed)) {
      take_handed(channel, queue);
      continue;
    }
    if (to_client_.is_busy()) return false;
    if (state_.draining && is_undelivered(*front)) {
      // Not begun, nor waited for: the broker has it back when the connection ends.
      front->end();
      queue.pop_front();
      continue;
    }
    if (front->settle_when_handed && !channel.end.is_open() && !front->open) {
      // It cannot be acknowledged any more, and would come twice.
      front->end();
      queue.pop_front();
      continue;
    }
    if (is_given_up(channel, *front)) {
      const std::string& why = front->reason.empty() ? front->unavailable : front->reason;
      tell_trouble("return given up at a close", subject_of_reason(why),
                   "a returned message is not handed over, since its channel closes; its payload stays in "
                   "the store",
                   about(state_, *front).add({"reason", why}));
      front->end();
      queue.pop_front();
      continue;
    }
    switch (front->state()) {
      case State::ended:
        queue.pop_front();
        break;
      case State::queued:
        fetcher_.start(front);
        return true;
      case State::spilled:
        if (!state_.client_gone && body_stream_.has_room()) spill_.bring_back(queue);
        return true;
      case State::plain:
        hand_plain(channel, queue);
        break;
      case State::ready:
        if (body_stream_.is_yielding() || !body_stream_.has_room()) return false;
        next_channel_ = size_t{channel.id} + 1;
        body_stream_.begin(front);
        break;
      default:
        return true;
    }
  }
  return true;
}

void DeliveryPump::hand_plain(Channel& channel, DeliveryQueue& queue) {
  const std::shared_ptr<Delivery> front = queue.front();
  if (front->tapped != nullptr) tell(state_, *front->tapped);
  put(to_client_.content(), front->frames);
  queue.pop_front();
  if (front->open) {
    // bellhop relays the rest of its frames directly.
    to_client_.begin_content();
    channel.out.queued = false;
    channel.out.entry.reset();
    return;
  }
  handover_.handed(channel, front->unframed ? DeliveryPath::unframed : DeliveryPath::relayed, front->kind,
                   front->tag, front->no_ack, front->settle_when_handed, front->client_tag);
}

void DeliveryPump::recover(Channel& channel) {
  const auto requeued = channel.deliveries.take_out_if([&](const std::shared_ptr<Delivery>& delivery) {
    const bool is_awaited = delivery->kind == DeliveryKind::get_ok && !delivery->is_answered;
    const bool stays = delivery->no_ack || is_awaited || delivery->open || delivery->is(State::parking) ||
                       delivery->is(State::handed) || body_stream_.is_of(delivery);
    // Its tag is the broker's again: nothing is acknowledged for it any more.
    if (stays) delivery->no_ack = true;
    return !stays;
  });
  for (const auto& delivery : requeued) delivery->end();
  channel.tags.clear();
}

bool DeliveryPump::end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw) {
  const DeliveryQueue& queue = channel.deliveries;
  const bool has_its = std::any_of(queue.begin(), queue.end(), [&](const auto& delivery) {
    return is_of_consumer(*delivery, consumer_tag);
  });
  if (!has_its) return false;
  channel.deliveries.push_frames(channel.id, channel.generation, DeliveryKind::notice, raw, consumer_tag);
  // In its turn: the tag may be in use again with the broker's next frame.
  pump_channel(channel);
  return true;
}

// No consumer's end waits for what may be held for long.
void DeliveryPump::end_held_consumers(Channel& channel) {
  while (has_held_consumer_end(channel.deliveries)) {
    const auto notice = *first_notice(channel.deliveries);
    give_back(channel, notice);
    channel.deliveries.take_out(notice);
    to_client_.answer(channel, notice->frames);
  }
}

// What a consumer that is gone was not handed is its queue's again, or parked where the broker has forgotten
// it. Behind the notice of its end there may be another's of the same tag.
void DeliveryPump::give_back(Channel& channel, const std::shared_ptr<Delivery>& notice) {
  std::vector<std::shared_ptr<Delivery>> unhanded;
  bool is_its = true;
  const auto given_back = channel.deliveries.take_out_if([&](const std::shared_ptr<Delivery>& delivery) {
    if (delivery == notice) is_its = false;
    if (!is_its || delivery->open || !is_of_consumer(*delivery, notice->consumer_tag)) return false;
    if (delivery->no_ack) {
      unhanded.push_back(delivery);
      return false;
    }
    return !delivery->is(State::parking) && !delivery->is(State::ended) && !delivery->is(State::handed) &&
           !body_stream_.is_of(delivery);
  });
  for (const auto& delivery : given_back) {
    delivery->end();
    proxy_acks_.reject(channel, delivery->tag, true);
  }
  for (const auto& delivery : unhanded) undeliverable_.park_unhanded(channel, delivery);
}

}  // namespace bellhop
