// Byte spans, and big-endian reading and writing: what every codec of this folder uses.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bellhop {

using Bytes = std::span<const uint8_t>;  // borrowed, never owned
using Buffer = std::vector<uint8_t>;     // owned

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline uint16_t load_u16(const uint8_t* at) {
  return static_cast<uint16_t>((at[0] << 8) | at[1]);
}
inline uint32_t load_u32(const uint8_t* at) {
  return (uint32_t{at[0]} << 24) | (uint32_t{at[1]} << 16) | (uint32_t{at[2]} << 8) | uint32_t{at[3]};
}
inline uint64_t load_u64(const uint8_t* at) {
  return (uint64_t{load_u32(at)} << 32) | load_u32(at + 4);
}

inline void store_u16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
inline void store_u32(uint8_t* at, uint32_t value) {
  store_u16(at, static_cast<uint16_t>(value >> 16));
  store_u16(at + 2, static_cast<uint16_t>(value));
}
inline void store_u64(uint8_t* at, uint64_t value) {
  store_u32(at, static_cast<uint32_t>(value >> 32));
  store_u32(at + 4, static_cast<uint32_t>(value));
}

inline void put(Buffer& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void put_u8(Buffer& out, uint8_t value) {
  out.push_back(value);
}
inline void put_u32(Buffer& out, uint32_t value) {
  uint8_t raw[4];
  store_u32(raw, value);
  put(out, raw);
}
// Precondition: at most 255 bytes (AMQP short string); longer text is cut there.
inline void put_shortstr(Buffer& out, std::string_view text) {
  text = text.substr(0, 255);
  put_u8(out, static_cast<uint8_t>(text.size()));
  put(out, as_bytes(text));
}
inline void put_longstr(Buffer& out, std::string_view text) {
  put_u32(out, static_cast<uint32_t>(text.size()));
  put(out, as_bytes(text));
}

// Reads a span front to back. A read past the end returns zero or empty and makes ok() false for good, so a
// decoder asks once, at its end.
class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}

  uint8_t u8() { return has(1) ? take(1)[0] : uint8_t{0}; }
  uint16_t u16() { return has(2) ? load_u16(take(2).data()) : uint16_t{0}; }
  uint32_t u32() { return has(4) ? load_u32(take(4).data()) : 0; }
  uint64_t u64() { return has(8) ? load_u64(take(8).data()) : 0; }
  Bytes bytes(size_t count) { return has(count) ? take(count) : Bytes{}; }
  std::string_view shortstr() { return as_text(bytes(u8())); }
  Bytes longstr() { return bytes(u32()); }

  bool ok() const { return ok_; }
  Bytes rest() const { return rest_; }

 private:
  bool has(size_t count) {
    if (!ok_ || rest_.size() < count) ok_ = false;
    return ok_;
  }
  Bytes take(size_t count) {
    Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  Bytes rest_;
  bool ok_ = true;
};

}  // namespace bellhop
