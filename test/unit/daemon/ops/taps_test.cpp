#include "daemon/ops/taps.h"

#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

std::vector<std::string> all_of(Taps::Tap& tap) {
  std::vector<std::string> lines;
  for (std::string line; tap.next(line);) lines.push_back(line);
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a tap gets each line in order, from its begin to its end", "[taps]") {
  Taps taps;
  taps.tell("", "before");
  REQUIRE_FALSE(taps.is_on());
  auto tap = taps.begin("");
  REQUIRE(taps.is_on());
  for (int i = 0; i < 3; ++i) taps.tell("orders", std::to_string(i));
  REQUIRE(all_of(*tap) == Lines{"0", "1", "2"});
  REQUIRE(all_of(*tap).empty());
  tap.reset();
  REQUIRE_FALSE(taps.is_on());
}

TEST_CASE("a tap of a route gets that route's lines", "[taps]") {
  Taps taps;
  const auto one = taps.begin("orders"), all = taps.begin("");
  taps.tell("orders", "a");
  taps.tell("audit", "b");
  taps.tell("", "c");
  REQUIRE(all_of(*one) == Lines{"a"});
  REQUIRE(all_of(*all) == Lines{"a", "b", "c"});
}

TEST_CASE("what has no place is missed and counted", "[taps]") {
  Taps taps;
  const auto tap = taps.begin("");
  for (size_t i = 0; i < TapRing::lines_max + 5; ++i) taps.tell("", std::to_string(i));
  REQUIRE(tap->take_missed() == 5);
  REQUIRE(tap->take_missed() == 0);
  const Lines lines = all_of(*tap);
  REQUIRE(lines.size() == TapRing::lines_max);
  REQUIRE(lines.back() == std::to_string(TapRing::lines_max - 1));
  taps.tell("", "again");
  REQUIRE(all_of(*tap) == Lines{"again"});
}

TEST_CASE("there are four places, and a tap's end gives its back without its lines", "[taps]") {
  Taps taps;
  std::vector<std::unique_ptr<Taps::Tap>> open;
  for (size_t i = 0; i < Taps::taps_max; ++i) open.push_back(taps.begin(""));
  REQUIRE(open.back() != nullptr);
  REQUIRE(taps.begin("") == nullptr);
  taps.tell("", "left unread");
  open[2].reset();
  open[2] = taps.begin("");
  REQUIRE(open[2] != nullptr);
  REQUIRE(all_of(*open[2]).empty());
  REQUIRE(all_of(*open[1]) == Lines{"left unread"});
}

TEST_CASE("of many writers each line comes once or is counted", "[taps]") {
  Taps taps;
  const auto tap = taps.begin("");
  constexpr int writers = 4, each = 20000;
  std::atomic<int> at_work{writers};
  std::vector<std::thread> threads;
  threads.reserve(writers);
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < each; ++i) taps.tell("", std::to_string(w) + ":" + std::to_string(i));
      --at_work;
    });
  }
  std::vector<int> newest(writers, -1);
  bool in_order = true;
  size_t got = 0;
  const auto read = [&] {
    for (std::string line; tap->next(line); ++got) {
      const int writer = std::stoi(line), number = std::stoi(line.substr(line.find(':') + 1));
      in_order = in_order && number > newest[static_cast<size_t>(writer)];
      newest[static_cast<size_t>(writer)] = number;
    }
  };
  while (at_work != 0) read();
  for (std::thread& thread : threads) thread.join();
  read();
  REQUIRE(in_order);
  REQUIRE(got + tap->take_missed() == size_t{writers} * each);
}

TEST_CASE("taps come and go while sessions tell", "[taps]") {
  Taps taps;
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&] {
      while (!ended) {
        if (taps.is_on()) taps.tell("orders", "a line that is too long to stand in the string itself");
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    const auto tap = taps.begin(i % 2 == 0 ? "" : "orders");
    std::string line;
    for (int n = 0; n < 10; ++n) tap->next(line);
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE_FALSE(taps.is_on());
}
