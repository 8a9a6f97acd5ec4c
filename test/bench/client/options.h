// The bench client's command line as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bellhop::bench {

struct Options {
  std::string mode;
  std::vector<std::string> endpoints;  // tcp:HOST:PORT, unix:PATH; for latency also echo-tcp and echo-unix
  std::string queue = "bench";
  std::string queue_type = "classic";
  std::string exchange;             // empty: the default exchange
  std::string routing_key;          // empty: the queue's name
  std::string bind;                 // EXCHANGE:KEY, declared and bound to the queue
  std::vector<uint8_t> properties;  // what follows the body size in every content header
  uint64_t count = 10000;
  size_t body_bytes = 1024;
  uint64_t window = 1000;
  uint64_t sessions = 200;
  uint16_t channels = 5;
  uint16_t prefetch = 500;
  bool batching = true;
  bool keep_queue = false;
  int cpu_of = 0;  // a process whose CPU time over the timed part is reported; 0: none
};

// Parses; ends the process with usage (exit 2) when the line is wrong.
Options parse_options(int argc, char** argv);

}  // namespace bellhop::bench
