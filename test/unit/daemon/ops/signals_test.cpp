#include "daemon/ops/signals.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "test/support/catch.h"
#include "test/support/test_loop.h"

using namespace bellhop;
using bellhop::test::TestLoop;

TEST_CASE("the first signal drains, every later one stops", "[signals]") {
  TestLoop loop;
  int drains = 0, stops = 0, hang_ups = 0;
  auto signals = Signals::watch(
      loop.get(), [&drains] { ++drains; }, [&stops] { ++stops; }, [&hang_ups] { ++hang_ups; });
  REQUIRE(signals.ok());
  const int first = GENERATE(SIGTERM, SIGINT, SIGQUIT);
  const int second = GENERATE(SIGTERM, SIGINT);

  REQUIRE(::kill(::getpid(), SIGHUP) == 0);
  REQUIRE(loop.run_until([&hang_ups] { return hang_ups == 1; }));
  REQUIRE(drains == 0);
  REQUIRE(::kill(::getpid(), first) == 0);
  REQUIRE(loop.run_until([&drains] { return drains == 1; }));
  REQUIRE(stops == 0);
  REQUIRE(::kill(::getpid(), second) == 0);
  REQUIRE(loop.run_until([&stops] { return stops == 1; }));
  REQUIRE(drains == 1);
}

TEST_CASE("the watch may end in its own callback", "[signals]") {
  TestLoop loop;
  std::unique_ptr<Signals> signals;
  bool drained = false;
  const auto drain = [&signals, &drained] {
    drained = true;
    signals.reset();
  };
  signals = std::move(Signals::watch(
                          loop.get(), drain, [] {}, [] {})
                          .value());
  REQUIRE(::kill(::getpid(), SIGTERM) == 0);
  REQUIRE(loop.run_until([&drained] { return drained; }));
}

TEST_CASE("a signal that is meant for somebody else does not end the process", "[signals]") {
  ignore_other_signals();
  for (const int number : {SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ, SIGRTMIN, SIGRTMAX})
    REQUIRE(::kill(::getpid(), number) == 0);
}

TEST_CASE("writing to a closed socket does not end the process", "[signals]") {
  ignore_other_signals();
  int both[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  ::close(both[1]);
  REQUIRE(::write(both[0], "x", 1) == -1);
  REQUIRE(errno == EPIPE);
  ::close(both[0]);
}
