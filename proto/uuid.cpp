// xoshiro256** (Blackman and Vigna): four words of state, sixteen bytes of UUID for two steps of it.
#include "proto/uuid.h"

#include <bit>
#include <cstring>

namespace bellhop::proto {

namespace {

// The two digits of every octet: a UUID takes sixteen look-ups.
constexpr auto pairs = [] {
  constexpr char digits[] = "0123456789abcdef";
  std::array<char, 512> table{};
  for (size_t octet = 0; octet < 256; ++octet) {
    table[2 * octet] = digits[octet >> 4];
    table[2 * octet + 1] = digits[octet & 15];
  }
  return table;
}();

// The octets of `word` from the one at bit `first` down to the one at bit `last`.
inline char* put_hex(char* at, uint64_t word, int first, int last) {
  for (int shift = first; shift >= last; shift -= 8, at += 2) {
    std::memcpy(at, &pairs[2 * ((word >> shift) & 0xFF)], 2);
  }
  return at;
}

}  // namespace

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
  const uint64_t high = (random() & 0xFFFFFFFFFFFF0FFF) | 0x0000000000004000;  // version 4
  const uint64_t low = (random() & 0x3FFFFFFFFFFFFFFF) | 0x8000000000000000;   // variant 1
  Text text;
  char* at = text.data();
  at = put_hex(at, high, 56, 32);
  *at++ = '-';
  at = put_hex(at, high, 24, 16);
  *at++ = '-';
  at = put_hex(at, high, 8, 0);
  *at++ = '-';
  at = put_hex(at, low, 56, 48);
  *at++ = '-';
  put_hex(at, low, 40, 0);
  return text;
}

}  // namespace bellhop::proto
