// Makes UUIDs of version 4 that nobody can predict (proto/README.md, "Keys": a key is the right to read). It
// takes random bytes in blocks, because a call for each message would show in a profile.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace bellhop::proto {

// One owner, one thread.
class UuidGenerator {
 public:
  using Text = std::array<char, 36>;
  // Fills the whole span. For keys it must be fit for cryptography (daemon/ops/random_bytes.h).
  using Fill = std::function<void(std::span<uint8_t>)>;
  // Asks for nothing before the first next().
  explicit UuidGenerator(Fill fill) : fill_(std::move(fill)) {}
  // Lower-case, dashed, version 4, variant 1.
  Text next();

 private:
  Fill fill_;
  void refill();

  std::vector<uint8_t> block_;  // empty before the first next()
  size_t used_bytes_ = 0;
};

inline std::string_view view(const UuidGenerator::Text& text) {
  return {text.data(), text.size()};
}

}  // namespace bellhop::proto
