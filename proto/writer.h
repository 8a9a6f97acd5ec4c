// Fills bytes by which a buffer was grown in one step. So writing a method on the hot path costs one resize
// and a few copies, not one vector insertion for each field.
#pragma once

#include <cassert>

#include "proto/bytes.h"

namespace bellhop::proto {

// The text as a short string can hold it.
inline std::string_view shortstr_cut(std::string_view text) {
  return text.substr(0, 255);
}

// Borrows `out`, which must not change while the writer is used.
class Writer {
 public:
  // Grows `out` by `count` bytes, all of which are then to be written.
  Writer(Buffer& out, size_t count) {
    const size_t begin = out.size();
    out.resize(begin + count);
    at_ = out.data() + begin;
    end_ = at_ + count;
  }

  void u8(uint8_t value) { *take(1) = value; }
  void u16(uint16_t value) { store_u16(take(2), value); }
  void u32(uint32_t value) { store_u32(take(4), value); }
  void u64(uint64_t value) { store_u64(take(8), value); }
  void bytes(Bytes from) {
    uint8_t* to = take(from.size());
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  // Precondition: at most 255 bytes.
  void shortstr(std::string_view text) {
    u8(static_cast<uint8_t>(text.size()));
    bytes(as_bytes(text));
  }
  void longstr(std::string_view text) {
    u32(static_cast<uint32_t>(text.size()));
    bytes(as_bytes(text));
  }

  uint8_t* at() const { return at_; }
  // Takes back what was written from `at` on.
  void rewind(uint8_t* at) { at_ = at; }
  // What was reserved and not written.
  size_t left() const { return static_cast<size_t>(end_ - at_); }

 private:
  uint8_t* take(size_t count) {
    assert(count <= left());
    uint8_t* from = at_;
    at_ += count;
    return from;
  }

  uint8_t* at_;
  uint8_t* end_;
};

}  // namespace bellhop::proto
