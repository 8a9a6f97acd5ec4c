// Which configuration is in use, and how the last attempt to read it again went. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace bellhop {

struct ReloadView {
  uint64_t generation = 1;  // 1: the configuration of the start
  bool last_was_successful = true;
  std::chrono::system_clock::time_point last_success = std::chrono::system_clock::now();
};

class ReloadState {
 public:
  ReloadView view() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return view_;
  }
  void succeeded(std::chrono::system_clock::time_point now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++view_.generation;
    view_.last_was_successful = true;
    view_.last_success = now;
  }
  void failed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_.last_was_successful = false;
  }

 private:
  mutable std::mutex mutex_;
  ReloadView view_;
};

}  // namespace bellhop
