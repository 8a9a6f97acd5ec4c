// A bound that several share: bytes in memory, bytes in scratch files. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace bellhop {

class Room {
 public:
  explicit Room(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // False: it does not fit now.
  bool take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (bytes > bytes_max_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(uint64_t bytes) { used_ -= bytes; }
  uint64_t used_bytes() const { return used_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace bellhop
