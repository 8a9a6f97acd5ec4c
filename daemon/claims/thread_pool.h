// The threads that a store does its blocking work on. Each store has its own, so that a hung mount stops
// nothing but that store's transfers (libuv's pool is shared with name resolution). Whose work is done next
// is decided here, so that no session and no kind of work keeps the others waiting:
//
//     line (session 7, verify)  [][][][]  ─┐
//     line (session 7, read)    []        ─┼─► lines take turns, a job each; a line that has its share of the
//     threads, line (session 9, write)   []        ─┘   or whose kind has, is passed over until one of its
//     jobs has ended
//
// A long job is cut by its author into parts of some milliseconds each (go_on), so that turns come soon.
#pragma once

#include <pthread.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

namespace bellhop {

// The kinds of a store's work. fetch: opening an object, and reading it whole when it is small; verify: a
// part of a large one; read: a piece of one that is on its way out.
enum class Work : uint8_t { upkeep, read, fetch, verify, write };
inline constexpr size_t work_kinds = 5;

// How many threads there are, and how many of them may work at the same time for one kind, and for one owner
// and kind. What is left is for the others, and is there at once.
struct ThreadShares {
  size_t threads_max;
  size_t one_kind_max;
  size_t one_line_max;
  int niceness = 0;  // of all of them: more gives way to everybody else's threads
};

class ThreadPool {
 public:
  // Threads are started when there is work and none is idle, and end after `idle_max` without any.
  explicit ThreadPool(ThreadShares shares, std::chrono::milliseconds idle_max = std::chrono::seconds(10));
  // Precondition: not on one of its own threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Any thread, its own too. Never waits. The queue has no bound of its own: its callers bound what they have
  // under way. `owner` says who waits for it, and is only compared: a session's executor, null for nobody. A
  // job must not throw. After stop() the job is run here and now.
  void run(const void* owner, Work work, std::function<void()> job);
  // For a job: has its next part run, before what waits in its line and behind one job of each other. False:
  // there is no thread for it, so the caller does it itself.
  [[nodiscard]] bool go_on(const void* owner, Work work, std::function<void()> job);
  // Does all that is queued, then ends and joins every thread. Precondition: not on one of its own threads.
  void stop();

  size_t thread_count() const;

 private:
  struct Line {
    const void* owner;
    Work work;
    std::deque<std::function<void()>> jobs;
    size_t running = 0;
  };
  using Lines = std::list<Line>;

  static void* thread_main(void* pool);
  void do_jobs();
  // With the mutex held.
  Line& line_of(const void* owner, Work work);
  bool may_run(const Line& line) const;
  Lines::iterator next_line();
  bool has_runnable();
  bool find_thread_for(const Line& line);
  bool start_thread();

  const ThreadShares shares_;
  const std::chrono::milliseconds idle_max_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;   // work, or stop
  std::condition_variable quiet_;  // the last thread has ended
  Lines lines_;                    // those with jobs, waiting or running; whose turn it is comes first
  std::array<size_t, work_kinds> running_{};  // by kind
  size_t queued_ = 0;
  std::vector<pthread_t> ended_;  // to be joined: by the next thread that works, or by stop()
  size_t live_ = 0;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace bellhop
