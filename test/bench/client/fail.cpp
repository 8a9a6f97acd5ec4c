#include "test/bench/client/fail.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bellhop::bench {

void fail(const std::string& what) {
  std::fprintf(stderr, "bench_client: %s\n", what.c_str());
  std::exit(1);
}

void fail_errno(const std::string& what) {
  fail(what + ": " + std::strerror(errno));
}

}  // namespace bellhop::bench
