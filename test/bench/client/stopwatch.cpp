#include "test/bench/client/stopwatch.h"

#include <ctime>
#include <string>

#include "test/bench/client/fail.h"

namespace bellhop::bench {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t cpu_ns_of(int pid) {
  if (pid == 0) return 0;
  clockid_t clock;
  timespec now{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0)
    fail("no CPU clock of process " + std::to_string(pid));
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace bellhop::bench
