#include "daemon/ops/turns.h"

#include <string>

#include "test/support/catch.h"

namespace bellhop {
namespace {

constexpr int owners[200] = {};
constexpr Shares shares{.all_max = 8, .one_kind_max = 6, .one_line_max = 4, .with_first_places_max = 12};

// Jobs are their own names; those under way are taken, all that may be.
std::string take_all(Turns<char>& turns) {
  std::string out;
  while (const auto taken = turns.take()) out += taken->job;
  return out;
}

void push(Turns<char>& turns, const void* owner, Work work, const std::string& jobs) {
  for (const char job : jobs) turns.push_back(owner, work, job);
}

TEST_CASE("a line's jobs are done in their order, as many at one time as are its share", "[turns]") {
  Turns<char> turns(shares);
  push(turns, &owners[0], Work::write, "abcdefgh");
  CHECK(take_all(turns) == "abcd");
  CHECK(turns.running() == 4);
  CHECK(turns.queued() == 4);
  CHECK_FALSE(turns.has_next());
  turns.ended(&owners[0], Work::write);
  CHECK(take_all(turns) == "e");
}

TEST_CASE("lines take turns, a job each", "[turns]") {
  Turns<char> turns(shares);
  push(turns, &owners[0], Work::write, "abcd");
  push(turns, &owners[1], Work::write, "x");
  push(turns, &owners[0], Work::fetch, "123");
  CHECK(take_all(turns) == "ax1b2c3d");
}

TEST_CASE("a job that goes on comes first in its line and behind one job of each other", "[turns]") {
  Turns<char> turns({.all_max = 1, .one_kind_max = 1, .one_line_max = 1});
  push(turns, &owners[0], Work::write, "ac");
  push(turns, &owners[1], Work::write, "xy");
  CHECK(take_all(turns) == "a");
  turns.push_front(&owners[0], Work::write, 'b');
  std::string order;
  for (int i = 0; i < 4; ++i) {
    turns.ended(&owners[i % 2], Work::write);
    order += take_all(turns);
  }
  CHECK(order == "xbyc");
}

TEST_CASE("however much one owner has waiting, another's jobs are done at once, and its own of another kind",
          "[turns]") {
  Turns<char> turns(shares);
  push(turns, &owners[0], Work::write, std::string(1000, 'w'));
  take_all(turns);
  push(turns, &owners[1], Work::write, "xy");
  push(turns, &owners[0], Work::fetch, "12");
  CHECK(take_all(turns) == "x1y2");
}

TEST_CASE("however many owners have one kind of work, places are left for another kind", "[turns]") {
  Turns<char> turns({.all_max = 8, .one_kind_max = 6, .one_line_max = 4});
  for (const int& owner : owners) push(turns, &owner, Work::write, "ww");
  CHECK(take_all(turns) == "wwwwww");
  push(turns, &owners[7], Work::fetch, "123");
  CHECK(take_all(turns) == "12");
}

TEST_CASE("a place that gets free is for the line that had its last turn before all others", "[turns]") {
  Turns<char> turns({.all_max = 4, .one_kind_max = 4, .one_line_max = 4});
  push(turns, &owners[0], Work::write, "aaaaaaaa");
  CHECK(take_all(turns) == "aaaa");
  push(turns, &owners[1], Work::write, "bbbb");
  std::string order;
  for (int i = 0; i < 4; ++i) {
    turns.ended(&owners[0], Work::write);
    order += take_all(turns);
  }
  CHECK(order == "abab");
}

TEST_CASE("who has no job under way gets a place when all are taken, and only one", "[turns]") {
  Turns<char> turns(shares);
  for (int owner = 0; owner < 4; ++owner) push(turns, &owners[owner], Work::write, "wwww");
  take_all(turns);
  push(turns, &owners[0], Work::fetch, "wwww");
  take_all(turns);
  REQUIRE(turns.running() == shares.all_max);
  size_t firsts = 0;
  for (int owner = 4; owner < 100; ++owner) {
    push(turns, &owners[owner], Work::write, "12");
    firsts += take_all(turns) == "1" ? 1 : 0;
  }
  CHECK(firsts == shares.with_first_places_max - shares.all_max);
  CHECK(turns.running() == shares.with_first_places_max);
  // It gets the next when the one has ended, and still before those who have some.
  turns.ended(&owners[4], Work::write);
  CHECK(turns.running() == shares.with_first_places_max - 1);
  CHECK(take_all(turns).size() == 1);
}

TEST_CASE("a job that is taken back or erased is done by nobody, and its line leaves nothing", "[turns]") {
  Turns<char> turns(shares);
  push(turns, &owners[0], Work::write, "abc");
  CHECK(turns.pop_back(&owners[0], Work::write) == 'c');
  turns.erase(&owners[0], Work::write, 'a');
  turns.erase(&owners[0], Work::write, 'x');  // not there
  turns.erase(&owners[1], Work::fetch, 'b');  // nor is the line
  CHECK(turns.queued() == 1);
  CHECK(take_all(turns) == "b");
  turns.ended(&owners[0], Work::write);
  CHECK(turns.queued() == 0);
  CHECK(turns.running() == 0);
  CHECK_FALSE(turns.has_next());
}

}  // namespace
}  // namespace bellhop
