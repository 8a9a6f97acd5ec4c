// Channels: a session's open channels, by number. One thread (the session's).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/door/amqp/channel.h"

namespace bellhop {

class Channels {
 public:
  // What is given outlives it.
  Channels(SessionMemory& memory, SessionMeter& meter) : memory_(memory), meter_(meter) {}

  // Null where there is none.
  Channel* find(uint16_t id) const { return id < slots_.size() ? slots_[id].get() : nullptr; }
  // The channel of that life, null once it ended.
  Channel* find(uint16_t id, uint64_t generation) const {
    Channel* found = find(id);
    return found != nullptr && found->generation == generation ? found : nullptr;
  }
  Channel* of(const Delivery& delivery) const { return find(delivery.channel, delivery.generation); }

  // Precondition: the id is free.
  Channel& open(uint16_t id) {
    if (slots_.size() <= id) slots_.resize(size_t{id} + 1);
    slots_[id] = std::make_unique<Channel>(id, ++generations_, memory_, meter_);
    open_++;
    return *slots_[id];
  }
  void remove(uint16_t id) {
    slots_[id].reset();
    open_--;
  }

  // By id; null where there is none.
  const std::vector<std::unique_ptr<Channel>>& all() const { return slots_; }
  size_t count() const { return open_; }
  // Publishes without their confirm, and those that have not left yet, since a store is not done with them.
  size_t unconfirmed() const {
    size_t sum = 0;
    for (const auto& channel : slots_) {
      if (channel != nullptr) sum += channel->confirms.unsettled() + channel->publishes.publishes();
    }
    return sum;
  }
  // Deliveries that the client has and did not settle.
  size_t unacknowledged() const {
    size_t sum = 0;
    for (const auto& channel : slots_) {
      if (channel != nullptr) sum += channel->tags.client_unsettled();
    }
    return sum;
  }
  // Returns that the client was not handed yet.
  bool has_returns() const {
    if (memory_.leases(MemoryUse::delivery) == 0) return false;
    for (const auto& channel : slots_) {
      if (channel != nullptr && !channel->returns.empty()) return true;
    }
    return false;
  }

 private:
  SessionMemory& memory_;
  SessionMeter& meter_;
  std::vector<std::unique_ptr<Channel>> slots_;
  size_t open_ = 0;
  uint64_t generations_ = 0;
};

}  // namespace bellhop
