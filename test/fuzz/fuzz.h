// What every target shares: the entry point that libFuzzer calls, and a check that makes a broken promise a
// finding.
#pragma once

#include <cstdlib>

#include "proto/bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace bellhop::fuzz {

inline void check(bool promise) {
  if (!promise) std::abort();
}

inline bool same(Bytes a, Bytes b) {
  return as_text(a) == as_text(b);
}

}  // namespace bellhop::fuzz
