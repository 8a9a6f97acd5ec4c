// The threads on which a store does its blocking work. Each store has its own, so that a hung mount stops
// only that store's transfers. (libuv's pool is shared with name resolution.) Each session and kind of work
// is a line; lines take turns (turns.h), so that none keeps the others waiting.
//
// The author of a long job cuts it into parts of some milliseconds each (go_on), so that turns come soon.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "daemon/ops/turns.h"

namespace bellhop {

// How many threads there are, how many of them may work at the same time for one kind, and how many for one
// owner and kind. The rest is free for the others at once.
struct ThreadShares {
  size_t threads_max;
  size_t one_kind_max;
  size_t one_line_max;
  int niceness = 0;  // of all of them: more gives way to everybody else's threads
};

class ThreadPool {
 public:
  // Starts a thread when there is work and none is idle; a thread ends after `idle_max` without work.
  explicit ThreadPool(ThreadShares shares, std::chrono::milliseconds idle_max = std::chrono::seconds(10));
  // Precondition: not on one of its own threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Any thread, its own too. Never waits. The queue has no bound of its own: callers bound what they have
  // under way. `owner` says who waits for the job and is only compared: a session's executor, or null. A job
  // must not throw. After stop() it runs `job` here and now.
  void run(const void* owner, Work work, std::function<void()> job);
  // For a job: queues its next part before what waits in its line, and behind one job of each other line.
  // False: there is no thread for it, so the caller does it itself.
  [[nodiscard]] bool go_on(const void* owner, Work work, std::function<void()> job);
  // Does everything queued, then ends and joins every thread. Precondition: not on one of its own threads.
  void stop();

  size_t thread_count() const;

 private:
  using Job = std::function<void()>;

  static void* thread_main(void* pool);
  void do_jobs();
  // With the mutex held.
  bool find_thread_for(const Turns<Job>::Line& line);
  bool start_thread();

  const ThreadShares shares_;
  const std::chrono::milliseconds idle_max_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;   // work, or stop
  std::condition_variable quiet_;  // the last thread has ended
  Turns<Job> turns_;
  std::vector<pthread_t> ended_;  // to be joined: by the next thread that works, or by stop()
  size_t live_ = 0;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace bellhop
