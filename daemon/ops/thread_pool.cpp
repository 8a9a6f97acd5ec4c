// A sized pool with threads that come and go. What it promises is in the header.
#include "daemon/ops/thread_pool.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace bellhop {

namespace {
// Enough for the calls made on it; a default stack is 8 MiB of address space and grows the resident set when
// touched.
constexpr size_t stack_bytes = 256 * 1024;
}  // namespace

ThreadPool::ThreadPool(ThreadShares shares, std::chrono::milliseconds idle_max)
    : shares_(shares),
      idle_max_(idle_max),
      turns_({.all_max = shares.threads_max,
              .one_kind_max = shares.one_kind_max,
              .one_line_max = shares.one_line_max}) {}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::run(const void* owner, Work work, std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_ || live_ != 0) {
      if (find_thread_for(turns_.push_back(owner, work, std::move(job)))) return;
      // No thread could be had at all: better slow than never.
      job = turns_.pop_back(owner, work);
    }
  }
  job();
}

bool ThreadPool::go_on(const void* owner, Work work, std::function<void()> job) {
  std::lock_guard lock(mutex_);
  return live_ != 0 && find_thread_for(turns_.push_front(owner, work, std::move(job)));
}

// After a job was queued. False: there is no thread, and none can be started.
bool ThreadPool::find_thread_for(const Turns<Job>::Line& line) {
  if (turns_.may_run(line)) {
    if (idle_ < turns_.queued() && live_ < shares_.threads_max) start_thread();
    wake_.notify_one();
  }
  return live_ != 0;
}

bool ThreadPool::start_thread() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, &ThreadPool::thread_main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (started) ++live_;
  return started;
}

void* ThreadPool::thread_main(void* pool) {
  pthread_setname_np(pthread_self(), "claims");
  auto* const self = static_cast<ThreadPool*>(pool);
  // Linux: of this thread alone. May be refused; then it is as the others are.
  if (self->shares_.niceness != 0)
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), self->shares_.niceness);
  self->do_jobs();
  return nullptr;
}

void ThreadPool::do_jobs() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!ended_.empty()) {
      const std::vector<pthread_t> ended = std::exchange(ended_, {});
      lock.unlock();
      for (pthread_t thread : ended) pthread_join(thread, nullptr);
      lock.lock();
      continue;
    }
    if (std::optional<Turns<Job>::Taken> taken = turns_.take()) {
      // The end of the job before may have made two lines free to go on.
      if (idle_ != 0 && turns_.has_next()) wake_.notify_one();
      lock.unlock();
      taken->job();
      taken->job = nullptr;
      lock.lock();
      turns_.ended(taken->owner, taken->work);
      continue;
    }
    if (stopping_) break;
    ++idle_;
    const bool woken = wake_.wait_for(lock, idle_max_, [this] { return stopping_ || turns_.has_next(); });
    --idle_;
    if (!woken) break;
  }
  --live_;
  ended_.push_back(pthread_self());
  if (live_ == 0) quiet_.notify_all();
}

void ThreadPool::stop() {
  std::vector<pthread_t> ended;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    quiet_.wait(lock, [this] { return live_ == 0; });
    ended.swap(ended_);
  }
  for (pthread_t thread : ended) pthread_join(thread, nullptr);
}

size_t ThreadPool::thread_count() const {
  std::lock_guard lock(mutex_);
  return live_;
}

}  // namespace bellhop
