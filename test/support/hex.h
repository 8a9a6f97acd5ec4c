// Bytes as tests write and compare them: "AC 01 00 'payload'", and numbers of a content header.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "proto/bytes.h"

namespace bellhop::test {

// Pairs of hex digits, with blanks between them, and text in single quotes.
inline Buffer from_hex(std::string_view text) {
  Buffer out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == '\n') {
      ++at;
    } else if (text[at] == '\'') {
      const size_t end = text.find('\'', at + 1);
      if (end == std::string_view::npos) std::abort();
      put(out, as_bytes(text.substr(at + 1, end - at - 1)));
      at = end + 1;
    } else {
      if (at + 1 >= text.size()) std::abort();
      out.push_back(static_cast<uint8_t>(digit(text[at]) * 16 + digit(text[at + 1])));
      at += 2;
    }
  }
  return out;
}

// Upper-case pairs with blanks between, so that a failed comparison can be read.
inline std::string to_hex(Bytes bytes) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const uint8_t octet : bytes) {
    if (!out.empty()) out += ' ';
    out += {digits[octet >> 4], digits[octet & 15]};
  }
  return out;
}

inline void put_u16(Buffer& out, uint16_t value) {
  uint8_t raw[2];
  store_u16(raw, value);
  put(out, raw);
}
inline void put_u64(Buffer& out, uint64_t value) {
  uint8_t raw[8];
  store_u64(raw, value);
  put(out, raw);
}

}  // namespace bellhop::test
