// The threads that a store does its blocking work on. Each store has its own, so that a hung mount stops
// nothing but that store's transfers (libuv's pool is shared with name resolution).
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace bellhop {

class ThreadPool {
 public:
  // Threads are started when there is work and none is idle, and end after `idle_max` without any.
  explicit ThreadPool(size_t threads_max, std::chrono::milliseconds idle_max = std::chrono::seconds(10));
  // Precondition: not on one of its own threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Any thread, its own too. Never waits. The queue has no bound of its own: its callers bound what they have
  // under way. A job must not throw. After stop() the job is run here and now.
  void run(std::function<void()> job);
  // Does all that is queued, then ends and joins every thread. Precondition: not on one of its own threads.
  void stop();

  size_t thread_count() const;

 private:
  static void* thread_main(void* pool);
  void work();
  bool start_thread_locked();

  const size_t threads_max_;
  const std::chrono::milliseconds idle_max_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;   // work, or stop
  std::condition_variable quiet_;  // the last thread has ended
  std::deque<std::function<void()>> jobs_;
  std::vector<pthread_t> ended_;  // to be joined: by the next thread that works, or by stop()
  size_t live_ = 0;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace bellhop
