#include "daemon/claims/thread_pool.h"

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "test/support/catch.h"

namespace bellhop {
namespace {

TEST_CASE("no more threads than it was given work at once", "[thread_pool]") {
  ThreadPool pool(3);
  CHECK(pool.thread_count() == 0);
  std::atomic<int> now = 0, most = 0;
  std::latch all(200);
  for (int i = 0; i < 200; ++i) {
    pool.run([&now, &most, &all] {
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
  ThreadPool pool(4);
  std::latch met(4);
  for (int i = 0; i < 4; ++i) pool.run([&met] { met.arrive_and_wait(); });
  met.wait();
}

TEST_CASE("stopping does what is queued, also what a job queues then", "[thread_pool]") {
  std::atomic<int> done = 0;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 50; ++i) {
      pool.run([&pool, &done] {
        ++done;
        pool.run([&done] { ++done; });
      });
    }
  }
  CHECK(done == 100);
}

TEST_CASE("a stopped pool runs a job on the caller", "[thread_pool]") {
  ThreadPool pool(2);
  pool.run([] {});
  pool.stop();
  std::thread::id where;
  pool.run([&where] { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("idle threads end, and new work finds new ones", "[thread_pool]") {
  ThreadPool pool(4, std::chrono::milliseconds(1));
  for (int round = 0; round < 5; ++round) {
    std::promise<void> ran;
    pool.run([&ran] { ran.set_value(); });
    ran.get_future().wait();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (pool.thread_count() != 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    CHECK(pool.thread_count() == 0);
  }
}

}  // namespace
}  // namespace bellhop
