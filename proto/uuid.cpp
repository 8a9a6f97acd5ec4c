// Sixteen random bytes become 36 characters, all digits at once.
#include "proto/uuid.h"

#include <cstring>

namespace bellhop::proto {

namespace {

constexpr size_t block_bytes = 4096;  // 256 UUIDs

// Vectors of gcc and clang: the machine's own where it has them, else emulated.
using Octets = uint8_t __attribute__((vector_size(16)));

Octets as_characters(Octets digits) {
  return digits + '0' + (Octets(digits > 9) & ('a' - '0' - 10));
}

// The two digits of every octet, in order.
std::array<char, 32> hex_digits(Octets octets) {
  const Octets high = as_characters(octets >> 4), low = as_characters(octets & 15);
  const Octets first =
      __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Octets second =
      __builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::array<char, 32> out;
  std::memcpy(out.data(), &first, 16);
  std::memcpy(out.data() + 16, &second, 16);
  return out;
}

}  // namespace

void UuidGenerator::refill() {
  block_.resize(block_bytes);
  fill_(block_);
  used_bytes_ = 0;
}

UuidGenerator::Text UuidGenerator::next() {
  if (used_bytes_ == block_.size()) refill();
  Octets octets;
  std::memcpy(&octets, block_.data() + used_bytes_, sizeof octets);
  used_bytes_ += sizeof octets;
  octets[6] = (octets[6] & 0x0F) | 0x40;  // version 4
  octets[8] = (octets[8] & 0x3F) | 0x80;  // variant 1
  const std::array<char, 32> digits = hex_digits(octets);
  // Eight digits, thrice four, and twelve, with a dash between them.
  Text text;
  std::memcpy(text.data(), digits.data(), 8);
  std::memcpy(&text[9], &digits[8], 4);
  std::memcpy(&text[14], &digits[12], 4);
  std::memcpy(&text[19], &digits[16], 4);
  std::memcpy(&text[24], &digits[20], 12);
  text[8] = text[13] = text[18] = text[23] = '-';
  return text;
}

}  // namespace bellhop::proto
