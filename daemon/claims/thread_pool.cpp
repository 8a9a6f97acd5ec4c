// A sized pool with threads that come and go. What it promises is in the header.
#include "daemon/claims/thread_pool.h"

#include <signal.h>

#include <utility>

namespace bellhop {

namespace {
// Enough for the calls made on it; a default stack is 8 MiB of address space and grows the resident set when
// touched.
constexpr size_t stack_bytes = 256 * 1024;
}  // namespace

ThreadPool::ThreadPool(size_t threads_max, std::chrono::milliseconds idle_max)
    : threads_max_(threads_max), idle_max_(idle_max) {}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::run(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_ || live_ != 0) {
      jobs_.push_back(std::move(job));
      if (idle_ < jobs_.size() && live_ < threads_max_) start_thread_locked();
      if (live_ != 0) {
        wake_.notify_one();
        return;
      }
      // No thread could be had at all: better slow than never.
      job = std::move(jobs_.back());
      jobs_.pop_back();
    }
  }
  job();
}

bool ThreadPool::start_thread_locked() {
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
  static_cast<ThreadPool*>(pool)->work();
  return nullptr;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!ended_.empty()) {
      const std::vector<pthread_t> ended = std::exchange(ended_, {});
      lock.unlock();
      for (pthread_t thread : ended) pthread_join(thread, nullptr);
      lock.lock();
      continue;
    }
    if (!jobs_.empty()) {
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
      continue;
    }
    if (stopping_) break;
    ++idle_;
    const bool woken = wake_.wait_for(lock, idle_max_, [this] { return stopping_ || !jobs_.empty(); });
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
