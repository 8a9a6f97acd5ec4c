// Random bytes that are the same for the same seed, where a test wants to know the UUIDs that come out.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>

namespace bellhop::test {

inline auto random_words(uint64_t seed) {
  return [words = std::mt19937_64(seed)](std::span<uint8_t> into) mutable {
    for (size_t at = 0; at + sizeof(uint64_t) <= into.size(); at += sizeof(uint64_t)) {
      const uint64_t word = words();
      std::memcpy(&into[at], &word, sizeof word);
    }
  };
}

}  // namespace bellhop::test
