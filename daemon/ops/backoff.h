// How long to wait before the next attempt: doubling from `first`, at most `most`, of which a random part of
// up to one half is left out, so that many who failed together do not come back together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace bellhop {

struct Backoff {
  uint32_t first_ms = 100, most_ms = 10000;

  // `attempt` counts from 1: the one that failed.
  template <typename Random>
  uint32_t wait_ms(uint32_t attempt, Random& random) const {
    const uint32_t doublings = std::min<uint32_t>(attempt == 0 ? 0 : attempt - 1, 16);
    const uint64_t whole = std::min<uint64_t>(uint64_t{first_ms} << doublings, most_ms);
    return static_cast<uint32_t>(whole - std::uniform_int_distribution<uint64_t>(0, whole / 2)(random));
  }
};

}  // namespace bellhop
