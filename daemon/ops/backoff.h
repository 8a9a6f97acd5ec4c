// How long to wait before the next attempt: `ms_min` after the first failure, twice as long after each
// further one, up to `ms_max`. A random part of up to one half is left out, so that those who failed together
// do not come back together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace bellhop {

struct Backoff {
  uint32_t ms_min, ms_max;

  // `failures` counts from 1: those in a row, with the one that has just been. From half of the whole wait to
  // all of it, both included. `random` is a generator of <random>; the caller's thread alone uses it.
  template <typename Random>
  uint32_t wait_ms(uint32_t failures, Random& random) const {
    const uint32_t doublings = std::min<uint32_t>(failures == 0 ? 0 : failures - 1, 16);
    const uint64_t whole = std::min<uint64_t>(uint64_t{ms_min} << doublings, ms_max);
    return static_cast<uint32_t>(whole - std::uniform_int_distribution<uint64_t>(0, whole / 2)(random));
  }
};

}  // namespace bellhop
