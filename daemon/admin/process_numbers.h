// What the kernel says of this process, for the usual process_* metrics.
#pragma once

#include <cstdint>

namespace bellhop {

struct ProcessNumbers {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  uint64_t open_descriptors = 0, descriptors_max = 0;
  uint64_t threads = 0;
};

// Any thread. What cannot be read is 0.
ProcessNumbers process_numbers();

}  // namespace bellhop
