// DeliveryQueue: a channel's order towards the client. What was delivered (or returned) behind a claim waits
// here until the claim's payload is there. A container: who hands over what is down/delivery_pump.h.
//
// What is in it counts as held for the client (SessionMemory). One thread (the session's).
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/door/amqp/delivery.h"

namespace bellhop {

class DeliveryQueue {
 public:
  using Entry = std::shared_ptr<Delivery>;
  using const_iterator = std::deque<Entry>::const_iterator;

  // `memory` outlives it.
  explicit DeliveryQueue(SessionMemory& memory) : memory_(memory) {}
  ~DeliveryQueue() { clear(); }
  DeliveryQueue(const DeliveryQueue&) = delete;
  DeliveryQueue& operator=(const DeliveryQueue&) = delete;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // Preconditions: not empty().
  const Entry& front() const { return entries_.front(); }
  const Entry& back() const { return entries_.back(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool contains(const Entry& delivery) const { return std::find(begin(), end(), delivery) != end(); }
  // Entries that are no content, see push_notice().
  size_t notices() const { return notices_; }

  void push(Entry delivery);
  // Whole frames that are no content: a reply that must not overtake what stands before it. `kind` says of
  // which order (returned or notice); `consumer_tag` of a notice: whose end it tells.
  void push_frames(uint16_t channel, uint64_t generation, DeliveryKind kind, Bytes frames,
                   const std::string& consumer_tag = {});
  void pop_front();
  // Nothing when it is not here.
  void take_out(const Entry& delivery);
  // Takes out all that `leaves` says, and returns them in their order.
  template <typename Leaves>
  std::vector<Entry> take_out_if(Leaves leaves) {
    std::vector<Entry> left;
    std::deque<Entry> kept;
    for (Entry& each : entries_) {
      if (leaves(each)) {
        uncount(*each);
        left.push_back(std::move(each));
      } else {
        kept.push_back(std::move(each));
      }
    }
    entries_ = std::move(kept);
    return left;
  }
  void clear();

 private:
  void uncount(Delivery& delivery);

  SessionMemory& memory_;
  std::deque<Entry> entries_;
  size_t notices_ = 0;
};

}  // namespace bellhop
