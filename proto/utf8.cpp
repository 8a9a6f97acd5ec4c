#include "proto/utf8.h"

#include <cstddef>

namespace bellhop::proto {

std::optional<uint32_t> take_code_point(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto byte = [&text](size_t at) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[at]));
  };
  const uint32_t lead = byte(0);
  const size_t bytes = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || text.size() < bytes) return std::nullopt;
  uint32_t point = bytes == 1 ? lead : lead & (0xFFU >> (bytes + 1));
  for (size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return std::nullopt;
    point = point << 6U | (byte(at) & 0x3FU);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < least[bytes] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return std::nullopt;
  text.remove_prefix(bytes);
  return point;
}

size_t utf8_length(std::string_view text) {
  const size_t before = text.size();
  return take_code_point(text) ? before - text.size() : 0;
}

size_t find_invalid_utf8(std::string_view text) {
  const size_t size = text.size();
  while (take_code_point(text)) {
  }
  return text.empty() ? std::string_view::npos : size - text.size();
}

}  // namespace bellhop::proto
