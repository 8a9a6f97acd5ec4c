#include "daemon/claims/filesystem/shared_sync.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

constexpr SharedSync::Place place{1, 2};

// A directory whose syncs wait until they are let go.
struct SlowDirectory {
  std::atomic<int> begun = 0;
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  Result<void> outcome;

  Result<void> sync() {
    ++begun;
    open.wait();
    std::this_thread::yield();  // so that others could begin one too, if they were let
    return outcome;
  }
};

struct Callers {
  SharedSync shared;
  SlowDirectory directory;
  std::atomic<int> asked = 0, failed = 0;
  std::vector<std::thread> threads;

  void add(SharedSync::Place where) {
    threads.emplace_back([this, where] {
      ++asked;
      if (!shared.run(where, [this] { return directory.sync(); })) ++failed;
    });
  }
  void until(const std::atomic<int>& counter, int value) const {
    while (counter < value) std::this_thread::yield();
  }
  void join() {
    for (std::thread& each : threads) each.join();
  }
};

}  // namespace

TEST_CASE("who comes alone has a sync of its own, and its outcome") {
  SharedSync shared;
  int syncs = 0;
  CHECK(shared.run(place, [&] { return ++syncs, Result<void>{}; }));
  const Result<void> outcome =
      shared.run(place, [&] { return ++syncs, Result<void>(Error{"disk on fire"}); });
  CHECK(outcome.error() == "disk on fire");
  CHECK(shared.run(place, [&] { return ++syncs, Result<void>{}; }));
  CHECK(syncs == 3);
}

TEST_CASE("those who come while two syncs are under way share the next") {
  Callers callers;
  callers.add(place);
  callers.add(place);
  callers.until(callers.directory.begun, 2);
  for (int i = 0; i < 6; ++i) callers.add(place);
  while (callers.shared.waiting() != 6) std::this_thread::yield();
  callers.directory.gate.set_value();
  callers.join();
  CHECK(callers.directory.begun == 3);
  CHECK(callers.failed == 0);
}

TEST_CASE("a sync that fails fails for all who shared it") {
  Callers callers;
  callers.directory.outcome = Error{"No space left on device"};
  for (int i = 0; i < 5; ++i) callers.add(place);
  callers.until(callers.asked, 5);
  callers.directory.gate.set_value();
  callers.join();
  CHECK(callers.failed == 5);
}

TEST_CASE("a sync of another directory covers nobody else") {
  Callers callers;
  callers.add(place);
  callers.add(place);
  callers.until(callers.directory.begun, 2);
  callers.add({1, 3});
  callers.add({1, 4});
  callers.until(callers.asked, 4);
  callers.directory.gate.set_value();
  callers.join();
  CHECK(callers.directory.begun == 4);
}
