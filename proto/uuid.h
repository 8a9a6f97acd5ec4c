// UUID v4 out of a userspace generator seeded once: getrandom for every message shows in a profile.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bellhop::proto {

// One owner, one thread. The seed is the caller's (getrandom at a session's start).
class UuidGenerator {
 public:
  using Text = std::array<char, 36>;
  explicit UuidGenerator(const std::array<uint64_t, 4>& seed) : state_(seed) {}
  // Lower-case, dashed, version 4, variant 1.
  Text next();

 private:
  uint64_t random();
  std::array<uint64_t, 4> state_;
};

inline std::string_view view(const UuidGenerator::Text& text) {
  return {text.data(), text.size()};
}

}  // namespace bellhop::proto
