// SlowStep: says which step of the start takes long. A store on a dead mount stands still inside a system
// call, and nobody else could tell.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "daemon/ops/log_line.h"

namespace bellhop {

// Lives as long as the step. After `patience` one warning, and at the end that it is over.
class SlowStep {
 public:
  static constexpr std::chrono::milliseconds patience{2000};

  explicit SlowStep(LogFields what);
  ~SlowStep();
  SlowStep(const SlowStep&) = delete;
  SlowStep& operator=(const SlowStep&) = delete;

 private:
  void watch();

  const LogFields what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;  // under the mutex
  std::thread thread_;
};

}  // namespace bellhop
