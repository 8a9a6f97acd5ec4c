#include "proto/claim_frame.h"

#include <algorithm>

namespace bellhop::proto {

namespace {

constexpr size_t shown_bytes_max = 64;

// Not <cctype>: keys are ASCII whatever the locale.
bool is_alphanumeric(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_key_character(char c) {
  return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, shown_bytes_max)) {
    const auto octet = static_cast<uint8_t>(c);
    if (octet >= 0x20 && octet < 0x7F && c != '\\') {
      out += c;
    } else {
      out += {'\\', 'x', digits[octet >> 4], digits[octet & 15]};
    }
  }
  if (text.size() > shown_bytes_max) out += "...";
  return out;
}

}  // namespace

Framing framing_of(Bytes start) {
  if (start.size() < claim_prefix_bytes || start[0] != 0xAC || start[1] != 0x01) return Framing::raw;
  if (start[2] == claim_inline_prefix[2]) return Framing::inlined;
  return start[2] == claim_check_prefix[2] ? Framing::claim : Framing::raw;
}

bool is_issued_key(std::string_view key) {
  const bool is_dashed = key.size() == 36;
  if (!is_dashed && key.size() != 32) return false;
  for (size_t at = 0; at < key.size(); ++at) {
    const bool wants_dash = is_dashed && (at == 8 || at == 13 || at == 18 || at == 23);
    if (wants_dash ? key[at] != '-' : !is_hex_digit(key[at])) return false;
  }
  return true;
}

bool is_redeemable_key(std::string_view key, KeyRule rule) {
  if (rule == KeyRule::issued) return is_issued_key(key);
  return !key.empty() && key.size() <= claim_key_bytes_max && is_alphanumeric(key[0]) &&
         std::all_of(key.begin(), key.end(), is_key_character) && !key.ends_with(".partial");
}

std::string bad_key_reason(std::string_view key) {
  return "\"" + printable(key) + "\" is not a key this store issued";
}

}  // namespace bellhop::proto
