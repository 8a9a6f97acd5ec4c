// Which configuration is in use, and how the last attempt to read it again went. Any thread.
//
// Each look at the file has a number. A request gets the number of the look that begins after it: those that
// come while one is under way share the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace bellhop {

struct ReloadView {
  uint64_t generation = 1;  // 1: the configuration of the start
  uint64_t looks = 0;       // that are over
  bool last_was_successful = true;
  std::vector<std::string> problems;  // of the last reload, as `bellhop check` prints them
  std::chrono::system_clock::time_point last_success = std::chrono::system_clock::now();
};

class ReloadState {
 public:
  ReloadView view() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return view_;
  }
  void succeeded(uint64_t generation, std::vector<std::string> warnings,
                 std::chrono::system_clock::time_point now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_.generation = generation;
    view_.last_was_successful = true;
    view_.problems = std::move(warnings);
    view_.last_success = now;
  }
  void failed(std::vector<std::string> errors) {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_.last_was_successful = false;
    view_.problems = std::move(errors);
  }
  // The file says again what is in use.
  void is_as_it_was() {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_.last_was_successful = true;
    view_.problems.clear();
  }
  void looked(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_.looks = number;
  }

 private:
  mutable std::mutex mutex_;
  ReloadView view_;
};

}  // namespace bellhop
