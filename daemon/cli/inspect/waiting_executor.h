// An Executor for a thread that may wait: what stores answer is run where it is waited for.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "daemon/ops/executor.h"

namespace bellhop {

class WaitingExecutor : public Executor {
 public:
  void post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  // Runs what is posted until `is_done`, which only tasks change.
  void run_until(const bool& is_done) {
    while (!is_done) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty(); });
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace bellhop
