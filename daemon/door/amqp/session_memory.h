// SessionMemory: what one session holds of messages, as leases. A lease is a number of bytes with a use; it
// counts as long as it lives, for the session and for the process (limits.inflight_bytes).
//
// One thread (the session's): a lease never leaves it. What a store is given is a weak
// reference, never a lease.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "daemon/ops/assert.h"
#include "daemon/ops/budget.h"

namespace bellhop {

class SessionMemory {
 public:
  enum class Use : uint8_t {
    publish,         // bodies and frames on their way to the broker or a store
    queued_publish,  // an entry of a channel's publish queue
    arriving_hop,    // a body that only more of the client's frames can complete
    delivery,        // an entry of a channel's delivery queue
    arriving_claim,  // a claim that only more of the broker's frames can complete
  };

  class Lease {
   public:
    Lease() = default;
    Lease(SessionMemory& memory, Use use, uint64_t bytes) : memory_(&memory), use_(use) {
      memory_->count(use_)++;
      grow(bytes);
    }
    ~Lease() { end(); }
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      Lease(std::move(other)).swap(*this);
      return *this;
    }

    // Preconditions of both: it is active; shrink: no more than bytes().
    void grow(uint64_t bytes) {
      BELLHOP_ASSERT(memory_ != nullptr, "a lease that grows is active");
      bytes_ += bytes;
      memory_->add(use_, bytes);
    }
    void shrink(uint64_t bytes) {
      BELLHOP_ASSERT(memory_ != nullptr && bytes <= bytes_, "a lease gives back no more than it has");
      bytes_ -= bytes;
      memory_->subtract(use_, bytes);
    }
    void resize(uint64_t bytes) { bytes > bytes_ ? grow(bytes - bytes_) : shrink(bytes_ - bytes); }
    // The same bytes for another use.
    void become(Use use) { *this = Lease(*memory_, use, bytes_); }
    void end() {
      if (memory_ == nullptr) return;
      shrink(bytes_);
      memory_->count(use_)--;
      memory_ = nullptr;
    }
    bool is_active() const { return memory_ != nullptr; }
    uint64_t bytes() const { return bytes_; }

   private:
    void swap(Lease& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      std::swap(use_, other.use_);
    }
    SessionMemory* memory_ = nullptr;
    uint64_t bytes_ = 0;
    Use use_ = Use::publish;
  };

  // Both outlive it. `held_for_clients`: what all sessions hold for their clients.
  SessionMemory(Budget& budget, std::atomic<uint64_t>& held_for_clients)
      : budget_(budget), held_for_clients_(held_for_clients) {}
  ~SessionMemory() { BELLHOP_ASSERT(held_bytes_ == 0, "a session's leases end before the session"); }
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  // Leases that are active.
  size_t leases(Use use) const { return counts_[static_cast<size_t>(use)]; }
  uint64_t held_bytes() const { return held_bytes_; }
  uint64_t held_for_client_bytes() const { return held_for_client_bytes_; }

  // This session holds more than its floor, of what others than the client will free, while all together hold
  // more than the limit. What is held for the client does not count here: its acks may be what frees it.
  bool over_budget() const {
    return held_bytes_ - held_for_client_bytes_ - arriving_hop_bytes_ > floor_bytes && budget_.is_over();
  }
  // All sessions together hold so much for their clients that each spills what it can.
  bool spills_early() const { return held_for_clients_.load(std::memory_order_relaxed) >= spill_all_bytes; }
  // They hold so much that none takes more than a little. Looked at again with the session's next tick.
  bool holds_too_much() const {
    return held_for_client_bytes_ >= floor_bytes &&
           held_for_clients_.load(std::memory_order_relaxed) >= hold_all_bytes;
  }

 private:
  static constexpr uint64_t floor_bytes = uint64_t{1} << 20;
  static constexpr uint64_t spill_all_bytes = uint64_t{24} << 20, hold_all_bytes = uint64_t{48} << 20;

  static bool is_for_client(Use use) { return use == Use::delivery || use == Use::arriving_claim; }
  size_t& count(Use use) { return counts_[static_cast<size_t>(use)]; }
  void add(Use use, uint64_t bytes) {
    held_bytes_ += bytes;
    budget_.take(bytes);
    if (use == Use::arriving_hop) arriving_hop_bytes_ += bytes;
    if (!is_for_client(use)) return;
    held_for_client_bytes_ += bytes;
    held_for_clients_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void subtract(Use use, uint64_t bytes) {
    held_bytes_ -= bytes;
    budget_.give_back(bytes);
    if (use == Use::arriving_hop) arriving_hop_bytes_ -= bytes;
    if (!is_for_client(use)) return;
    held_for_client_bytes_ -= bytes;
    held_for_clients_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  Budget& budget_;
  std::atomic<uint64_t>& held_for_clients_;
  std::array<size_t, 5> counts_{};
  uint64_t held_bytes_ = 0;             // all of it
  uint64_t held_for_client_bytes_ = 0;  // of held_bytes_
  uint64_t arriving_hop_bytes_ = 0;     // of held_bytes_
};

using MemoryUse = SessionMemory::Use;
using MemoryLease = SessionMemory::Lease;

}  // namespace bellhop
