// The memory that bodies take while they are on their way, counted over all sessions (limits.inflight_bytes).
// It only counts: a session that finds the budget over its bound stops reading its own socket. It goes on
// when its own transfers give memory back, so no session has to wake another.
#pragma once

#include <atomic>
#include <cstdint>

namespace bellhop {

class Budget {
 public:
  explicit Budget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // Any thread, all of them. `bytes` may take the budget over its bound: the caller looks at is_over().
  void take(uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  bool is_over() const {
    return used_.load(std::memory_order_relaxed) > bytes_max_.load(std::memory_order_relaxed);
  }
  void set_bytes_max(uint64_t bytes_max) { bytes_max_.store(bytes_max, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> bytes_max_;
};

}  // namespace bellhop
