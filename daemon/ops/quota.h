// Quota: a number of bytes, in memory or in scratch files, that several owners share. Any thread.
// QuotaShare: what one of them has of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace bellhop {

class Quota {
 public:
  explicit Quota(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // False: it does not fit now.
  bool take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      const uint64_t most = bytes_max_;
      if (used > most || bytes > most - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(uint64_t bytes) { used_ -= bytes; }
  uint64_t used_bytes() const { return used_; }
  uint64_t bytes_max() const { return bytes_max_; }
  // What is taken stays taken.
  void set_bytes_max(uint64_t bytes_max) { bytes_max_ = bytes_max; }

 private:
  std::atomic<uint64_t> bytes_max_;
  std::atomic<uint64_t> used_{0};
};

// A part of a quota, given back when it is destroyed. Empty when it did not fit. The quota outlives it.
class QuotaShare {
 public:
  QuotaShare() = default;
  QuotaShare(Quota& quota, uint64_t bytes) {
    if (!quota.take(bytes)) return;
    quota_ = &quota;
    bytes_ = bytes;
  }
  ~QuotaShare() {
    if (quota_ != nullptr) quota_->give_back(bytes_);
  }
  QuotaShare(QuotaShare&& other) noexcept { *this = std::move(other); }
  QuotaShare& operator=(QuotaShare&& other) noexcept {
    std::swap(quota_, other.quota_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  explicit operator bool() const { return quota_ != nullptr; }

 private:
  Quota* quota_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace bellhop
