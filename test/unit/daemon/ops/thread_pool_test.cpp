#include "daemon/ops/thread_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <string>
#include <thread>

#include "test/support/catch.h"

namespace bellhop {
namespace {

ThreadShares all_for_one(size_t threads) {
  return {.threads_max = threads, .one_kind_max = threads, .one_line_max = threads};
}

// Jobs that last until the test lets them go.
class Held {
 public:
  ~Held() { release(); }
  std::function<void()> job() {
    return [this] {
      std::unique_lock lock(mutex_);
      ++running_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
      --running_;
    };
  }
  void wait_for(size_t running) {
    std::unique_lock lock(mutex_);
    REQUIRE(
        changed_.wait_for(lock, std::chrono::seconds(60), [this, running] { return running_ >= running; }));
  }
  size_t running() {
    std::lock_guard lock(mutex_);
    return running_;
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
  bool released_ = false;
};

void run_and_wait(ThreadPool& pool, const void* owner, Work work) {
  std::promise<void> ran;
  pool.run(owner, work, [&ran] { ran.set_value(); });
  REQUIRE(ran.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

TEST_CASE("no more threads than it was given work at once", "[thread_pool]") {
  ThreadPool pool(all_for_one(3));
  CHECK(pool.thread_count() == 0);
  std::atomic<int> now = 0, most = 0;
  std::latch all(200);
  for (int i = 0; i < 200; ++i) {
    pool.run(nullptr, Work::read, [&now, &most, &all] {
      const int working = ++now;
      int seen = most;
      while (working > seen && !most.compare_exchange_weak(seen, working)) {
      }
      std::this_thread::yield();
      --now;
      all.count_down();
    });
  }
  all.wait();
  CHECK(most <= 3);
  CHECK(pool.thread_count() <= 3);
}

TEST_CASE("jobs that wait for each other find a thread each", "[thread_pool]") {
  ThreadPool pool(all_for_one(4));
  std::latch met(4);
  for (int i = 0; i < 4; ++i) pool.run(nullptr, Work::read, [&met] { met.arrive_and_wait(); });
  met.wait();
}

TEST_CASE("stopping does what is queued, also what a job queues then", "[thread_pool]") {
  std::atomic<int> done = 0;
  {
    ThreadPool pool(all_for_one(2));
    for (int i = 0; i < 50; ++i) {
      pool.run(nullptr, Work::read, [&pool, &done] {
        ++done;
        pool.run(nullptr, Work::read, [&done] { ++done; });
      });
    }
  }
  CHECK(done == 100);
}

TEST_CASE("a stopped pool runs a job on the caller", "[thread_pool]") {
  ThreadPool pool(all_for_one(2));
  pool.run(nullptr, Work::read, [] {});
  pool.stop();
  std::thread::id where;
  pool.run(nullptr, Work::read, [&where] { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("idle threads end, and new work finds new ones", "[thread_pool]") {
  ThreadPool pool(all_for_one(4), std::chrono::milliseconds(1));
  for (int round = 0; round < 5; ++round) {
    std::promise<void> ran;
    pool.run(nullptr, Work::read, [&ran] { ran.set_value(); });
    ran.get_future().wait();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (pool.thread_count() != 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    CHECK(pool.thread_count() == 0);
  }
}

TEST_CASE("however much one owner has waiting, another finds a thread at once", "[thread_pool]") {
  ThreadPool pool({.threads_max = 4, .one_kind_max = 3, .one_line_max = 2});
  const int one = 0, other = 0;
  Held held;
  for (int i = 0; i < 100; ++i) pool.run(&one, Work::verify, held.job());
  held.wait_for(2);
  run_and_wait(pool, &other, Work::verify);
  run_and_wait(pool, &one,
               Work::read);  // what is on its way out does not wait for what is still to be fetched
  CHECK(held.running() == 2);
  held.release();
}

TEST_CASE("however many owners have one kind of work, another kind finds a thread at once", "[thread_pool]") {
  ThreadPool pool({.threads_max = 4, .one_kind_max = 3, .one_line_max = 2});
  const int owners[50] = {};
  Held held;
  for (const int& owner : owners) {
    for (int i = 0; i < 4; ++i) pool.run(&owner, Work::verify, held.job());
  }
  held.wait_for(3);
  run_and_wait(pool, &owners[0], Work::write);
  run_and_wait(pool, nullptr, Work::upkeep);
  CHECK(held.running() == 3);
  held.release();
}

TEST_CASE("threads that give way do so, and no others", "[thread_pool]") {
  const auto niceness_in = [](ThreadPool& pool) {
    std::promise<int> seen;
    pool.run(nullptr, Work::verify,
             [&seen] { seen.set_value(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()))); });
    return seen.get_future().get();
  };
  ThreadShares shares = all_for_one(1);
  ThreadPool usual(shares);
  const int base = niceness_in(usual);
  shares.niceness = std::min(base + 3, 19);
  ThreadPool giving_way(shares);
  CHECK(niceness_in(giving_way) == shares.niceness);
  CHECK(niceness_in(usual) == base);
  CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())) == base);
}

TEST_CASE("owners take turns, a job each, and the next part of a job comes first in its line",
          "[thread_pool]") {
  ThreadPool pool(all_for_one(1));
  const int one = 0, other = 0;
  Held gate;
  pool.run(nullptr, Work::upkeep, gate.job());
  gate.wait_for(1);
  std::string order;
  std::promise<void> last;
  pool.run(&one, Work::verify, [&] {
    order += "1";
    if (!pool.go_on(&one, Work::verify, [&order] { order += "2"; })) order += "?";
  });
  pool.run(&one, Work::verify, [&order] { order += "3"; });
  for (const char* each : {"a", "b", "c"}) pool.run(&other, Work::verify, [&order, each] { order += each; });
  pool.run(&other, Work::verify, [&last] { last.set_value(); });
  gate.release();
  REQUIRE(last.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(order == "1a2b3c");
}

TEST_CASE("what waits for its share goes on when a job of its line has ended", "[thread_pool]") {
  ThreadPool pool({.threads_max = 8, .one_kind_max = 8, .one_line_max = 1});
  const int owners[3] = {};
  std::atomic<int> done = 0;
  std::promise<void> all;
  for (int i = 0; i < 300; ++i) {
    pool.run(&owners[i % 3], Work::write, [&] {
      if (++done == 300) all.set_value();
    });
  }
  CHECK(all.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

TEST_CASE("a stopped pool has no thread for the next part of a job", "[thread_pool]") {
  ThreadPool pool(all_for_one(2));
  pool.stop();
  CHECK_FALSE(pool.go_on(nullptr, Work::verify, [] {}));
}

}  // namespace
}  // namespace bellhop
