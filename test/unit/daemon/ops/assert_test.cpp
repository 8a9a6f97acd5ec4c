#include "daemon/ops/assert.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "daemon/ops/file_descriptor.h"
#include "daemon/ops/log.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

struct Death {
  int status = 0;
  std::string log;
};

// Runs `what` in a process of its own, whose log goes to a pipe.
Death death_by(const std::function<void()>& what) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  FileDescriptor read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // the test framework has a handler
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(write_end.get(), STDERR_FILENO);
    write_end.close();
    set_up_log(config::Config{});
    what();
    ::_exit(0);
  }
  write_end.close();
  Death death;
  char bytes[1024];
  for (ssize_t got; (got = ::read(read_end.get(), bytes, sizeof bytes)) > 0;)
    death.log.append(bytes, static_cast<size_t>(got));
  REQUIRE(::waitpid(child, &death.status, 0) == child);
  return death;
}

bool aborted(const Death& death) {
  return WIFSIGNALED(death.status) && WTERMSIG(death.status) == SIGABRT;
}

}  // namespace

TEST_CASE("an assertion that fails logs its place and its text, and aborts", "[assert]") {
  const int line = __LINE__ + 1;
  const Death death = death_by([] { BELLHOP_ASSERT(1 + 1 == 3, "two are three"); });
  REQUIRE(aborted(death));
  const std::string wanted =
      " test/unit/daemon/ops/assert_test.cpp:" + std::to_string(line) + ": does not hold: two are three\n";
  CAPTURE(death.log, wanted);
  REQUIRE(death.log.size() > wanted.size());
  REQUIRE(death.log.substr(death.log.size() - wanted.size()) == wanted);
}

TEST_CASE("an assertion that holds evaluates its condition once, and nothing happens", "[assert]") {
  int evaluated = 0;
  const Death death = death_by([&] {
    BELLHOP_ASSERT(++evaluated == 1, "once");
    BELLHOP_ASSERT(evaluated == 1, "not again");
  });
  REQUIRE(WIFEXITED(death.status));
  REQUIRE(WEXITSTATUS(death.status) == 0);
  REQUIRE(death.log == "");
}
