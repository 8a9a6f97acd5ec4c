#include "daemon/cli/slow_step.h"

#include <system_error>
#include <utility>

namespace bellhop {

SlowStep::SlowStep(LogFields what) : what_(std::move(what)) {
  try {
    thread_ = std::thread(&SlowStep::watch, this);
  } catch (const std::system_error&) {
    // Then nobody says it.
  }
}

SlowStep::~SlowStep() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SlowStep::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_for(lock, patience, [this] { return is_over_; })) return;
  log_warn("waits for a store that does not answer: is its mount dead?", what_);
  changed_.wait(lock, [this] { return is_over_; });
  log_info("the store has answered", what_);
}

}  // namespace bellhop
