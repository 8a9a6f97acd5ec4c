#include "daemon/door/amqp/delivery_queue.h"

namespace bellhop {

void DeliveryQueue::push(Entry delivery) {
  delivery->memory = MemoryLease(memory_, MemoryUse::delivery, delivery->held_bytes());
  if (delivery->kind == DeliveryKind::notice) notices_++;
  entries_.push_back(std::move(delivery));
}

void DeliveryQueue::push_frames(uint16_t channel, uint64_t generation, DeliveryKind kind, Bytes frames,
                                const std::string& consumer_tag) {
  auto entry = std::make_shared<Delivery>();
  entry->channel = channel;
  entry->generation = generation;
  entry->kind = kind;
  entry->no_ack = true;
  entry->consumer_tag = consumer_tag;
  put(entry->frames, frames);
  push(std::move(entry));
}

void DeliveryQueue::pop_front() {
  uncount(*entries_.front());
  entries_.pop_front();
}

void DeliveryQueue::take_out(const Entry& delivery) {
  auto at = std::find(entries_.begin(), entries_.end(), delivery);
  if (at == entries_.end()) return;
  uncount(**at);
  entries_.erase(at);
}

void DeliveryQueue::clear() {
  for (const Entry& each : entries_) uncount(*each);
  entries_.clear();
}

void DeliveryQueue::uncount(Delivery& delivery) {
  delivery.memory.end();
  if (delivery.kind == DeliveryKind::notice) notices_--;
}

}  // namespace bellhop
