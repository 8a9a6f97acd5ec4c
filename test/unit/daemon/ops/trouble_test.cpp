#include "daemon/ops/trouble.h"

#include <string>
#include <vector>

#include "test/support/catch.h"

using namespace bellhop;
using namespace std::chrono_literals;

namespace {

struct Rig {
  std::vector<std::string> lines;
  TroubleBook book{
      [this](spdlog::level::level_enum level, const std::string& message, const LogFields& fields) {
        std::string line = (level == spdlog::level::warn ? "warn " : "info ") + message;
        LogReader reader(fields.encoded());
        while (const auto field = reader.next())
          line += " " + std::string(field->name) + "=" + std::string(field->value);
        lines.push_back(line);
      }};
  TroubleBook::Clock::time_point now{};

  void happen(const std::string& subject, const std::string& line) {
    book.happened("publish refused", subject, spdlog::level::warn, line, {}, now);
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the same trouble is told once, then counted, then told to be over", "[trouble]") {
  Rig rig;
  for (int i = 0; i < 1000; ++i) {
    rig.happen("claims", "refused " + std::to_string(i));
    rig.now += 10ms;
  }
  REQUIRE(rig.lines == Lines{"warn refused 0"});

  rig.now += 20s;
  rig.happen("claims", "refused 1000");
  REQUIRE(rig.lines == Lines{"warn refused 0", "warn refused 1000 times=1000 seconds=30"});

  rig.happen("claims", "refused 1001");
  rig.book.over("publish refused", "claims", "store takes publishes again", {}, rig.now);
  REQUIRE(rig.lines.size() == 3);
  REQUIRE(rig.lines[2] == "info store takes publishes again times=1002 seconds=30");

  SECTION("and is new when it comes again after a while") {
    rig.now += 30s;
    rig.happen("claims", "refused again");
    REQUIRE(rig.lines.size() == 4);
    REQUIRE(rig.lines.back() == "warn refused again");
  }
  SECTION("what is over is not told twice") {
    rig.book.over("publish refused", "claims", "again", {}, rig.now);
    REQUIRE(rig.lines.size() == 3);
  }
}

TEST_CASE("what comes and goes in turn does not fill the log", "[trouble]") {
  Rig rig;
  const auto end = [&rig] { rig.book.over("publish refused", "claims", "fine again", {}, rig.now); };
  for (int i = 0; i < 1000; ++i) {
    rig.happen("claims", "refused");
    rig.now += 10ms;
    end();
    rig.now += 10ms;
  }
  REQUIRE(rig.lines == Lines{"warn refused", "info fine again times=1 seconds=0"});
  rig.now += 30s;
  rig.book.sum_up(rig.now);
  REQUIRE(rig.lines.size() == 3);
  REQUIRE(rig.lines.back() == "info fine again times=1000 seconds=50");
}

TEST_CASE("a number or a key in a reason makes no other subject of it", "[trouble]") {
  const auto subject = [](const std::string& store, const std::string& rest) {
    return subject_of_reason("store '" + store + "': /mnt/" + rest);
  };
  REQUIRE(subject("beta", "0191b6a2-7c9e-7d00-8a55-c0ffee123456: no space, 12 bytes") ==
          subject("beta", "ffffffff-7c9e-7d00-8a55-c0ffee654321: no space, 9876 bytes"));
  REQUIRE(subject("beta", "x") != subject("bad", "x"));
  REQUIRE(subject_of_reason("") == "");
  REQUIRE(subject_of_reason("a-b 5-") == "a-b #");
}

TEST_CASE("another subject is another trouble", "[trouble]") {
  Rig rig;
  rig.happen("one", "first");
  rig.happen("two", "second");
  rig.book.over("publish refused", "three", "over", {}, rig.now);
  rig.book.over("another kind", "one", "over", {}, rig.now);
  REQUIRE(rig.lines == Lines{"warn first", "warn second"});
}

TEST_CASE("what was counted is summed up also when it does not come again", "[trouble]") {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.happen("claims", "refused");
  rig.now += 29s;
  rig.book.sum_up(rig.now);
  REQUIRE(rig.lines.size() == 1);
  rig.now += 1s;
  rig.book.sum_up(rig.now);
  REQUIRE(rig.lines.back() == "warn refused times=2 seconds=30");
  rig.now += 30s;
  rig.book.sum_up(rig.now);
  REQUIRE(rig.lines.size() == 2);
  REQUIRE(rig.book.is_empty());  // quiet for a minute
}

TEST_CASE("at the end all that was counted is told", "[trouble]") {
  Rig rig;
  rig.happen("claims", "refused");
  rig.happen("claims", "refused once more");
  rig.book.sum_up_all(rig.now);
  REQUIRE(rig.lines == Lines{"warn refused", "warn refused once more"});
}

TEST_CASE("the book is bounded: the trouble that has been quiet longest is summed up and leaves",
          "[trouble]") {
  Rig rig;
  rig.happen("oldest", "oldest");
  rig.happen("oldest", "oldest again");
  for (size_t i = 1; i < TroubleBook::entries_max; ++i) {
    rig.now += 1ms;
    rig.happen(std::string(i, 'x'), "other");
  }
  REQUIRE(rig.lines.size() == TroubleBook::entries_max);
  rig.now += 1ms;
  rig.happen("too many", "newest");
  REQUIRE(rig.lines.size() == TroubleBook::entries_max + 2);
  REQUIRE(rig.lines[rig.lines.size() - 2] == "warn oldest again");
  REQUIRE(rig.lines.back() == "warn newest");
}
