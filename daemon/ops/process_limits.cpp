#include "daemon/ops/process_limits.h"

#include <malloc.h>
#include <sys/resource.h>

namespace bellhop {

// A session takes about six descriptors, so the usual soft limit of 1024 is too low for many of them.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// By default glibc learns from the first large buffer that is freed to keep such ones in its arenas, of which
// each session's thread has one: many sessions then keep what none of them uses. With a fixed limit a large
// buffer is the system's again once it is freed.
void give_back_large_buffers() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
}

void give_back_free_memory() {
  malloc_trim(0);
}

}  // namespace bellhop
