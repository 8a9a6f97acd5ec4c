// xoshiro256** (Blackman and Vigna): four words of state, sixteen bytes of UUID for two steps of it.
#include "proto/uuid.h"

#include <bit>

namespace bellhop::proto {

uint64_t UuidGenerator::random() {
  // Zeros would stay zeros for ever.
  if ((state_[0] | state_[1] | state_[2] | state_[3]) == 0) state_[0] = 0x9E3779B97F4A7C15;
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

UuidGenerator::Text UuidGenerator::next() {
  constexpr char digits[] = "0123456789abcdef";
  const uint64_t high = (random() & 0xFFFFFFFFFFFF0FFF) | 0x0000000000004000;  // version 4
  const uint64_t low = (random() & 0x3FFFFFFFFFFFFFFF) | 0x8000000000000000;   // variant 1
  Text text;
  size_t at = 0;
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) text[at++] = '-';
    const uint64_t word = digit < 16 ? high : low;
    text[at++] = digits[(word >> (60 - 4 * (digit % 16))) & 15];
  }
  return text;
}

}  // namespace bellhop::proto
