// What the process's sessions know of the broker's nodes: which URL worked last, and which addresses failed
// lately. A new session begins where the others are served, and does not wait for a node that has just failed
// them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace bellhop {

// Any thread. Times are uv_hrtime()'s, in ms.
class BrokerNodes {
 public:
  static constexpr uint64_t avoided_ms = 30'000;
  static constexpr size_t failed_max = 256;

  // The index of the URL that worked last; 0 at first.
  size_t preferred() const { return preferred_.load(std::memory_order_relaxed); }
  void prefer(size_t url) { preferred_.store(url, std::memory_order_relaxed); }

  // An address sent its connection.start, or failed to.
  void reached(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_at_ms_.erase(address);
  }
  void failed(const std::string& address, uint64_t now_ms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_at_ms_.size() >= failed_max)
      std::erase_if(failed_at_ms_, [&](const auto& each) { return each.second + avoided_ms <= now_ms; });
    if (failed_at_ms_.size() < failed_max) failed_at_ms_[address] = now_ms;
  }
  // Whether it failed in the last half minute: others are tried before it.
  bool failed_lately(const std::string& address, uint64_t now_ms) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = failed_at_ms_.find(address);
    return found != failed_at_ms_.end() && now_ms < found->second + avoided_ms;
  }

 private:
  std::atomic<size_t> preferred_{0};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> failed_at_ms_;  // bounded; names may resolve to ever new addresses
};

}  // namespace bellhop
