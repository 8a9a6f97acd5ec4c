// Wall time of the bench client, and CPU time of the process it measures through.
#pragma once

#include <chrono>
#include <cstdint>

namespace bellhop::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start);

// CPU nanoseconds that the process has used so far in all threads, those that have ended included; 0 for pid
// 0. The kernel's own count: /proc/PID/stat only knows ticks of 10 ms.
int64_t cpu_ns_of(int pid);

// Starts both clocks when made.
class Stopwatch {
 public:
  explicit Stopwatch(int cpu_of) : cpu_of_(cpu_of), cpu_start_ns_(cpu_ns_of(cpu_of)), start_(Clock::now()) {}
  void stop() {
    seconds_ = seconds_since(start_);
    cpu_ns_ = cpu_ns_of(cpu_of_) - cpu_start_ns_;
  }
  double seconds() const { return seconds_; }
  int64_t cpu_ns() const { return cpu_ns_; }

 private:
  int cpu_of_;
  int64_t cpu_start_ns_;
  Clock::time_point start_;
  double seconds_ = 0;
  int64_t cpu_ns_ = 0;
};

}  // namespace bellhop::bench
