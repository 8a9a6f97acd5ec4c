// A publish whose three frames stand whole at the front of a buffer: the usual case of a small message.
#pragma once

#include <optional>

#include "proto/bytes.h"
#include "proto/content_header.h"
#include "proto/frame.h"
#include "proto/method.h"

namespace bellhop::proto {

// basic.publish, a content header of class basic, and one frame with the whole body: one behind the other, of
// one channel. Borrows from the bytes it was found in.
struct WholePublish {
  const uint8_t* begin;
  size_t method_bytes, header_bytes, body_bytes;  // of the frames
  uint16_t channel;
  uint16_t flags;  // of the properties

  Bytes raw() const { return {begin, method_bytes + header_bytes + body_bytes}; }
  Bytes method() const { return {begin, method_bytes}; }
  Bytes header() const { return {begin + method_bytes, header_bytes}; }
  Bytes body() const { return {begin + method_bytes + header_bytes, body_bytes}; }
};

// Nothing when `in` does not begin with one, or when any frame has more than frame_bytes_max +
// frame_grace_bytes bytes. Says nothing of the method's arguments and of the properties. Inline: most small
// messages are looked at by this alone.
inline std::optional<WholePublish> whole_publish(Bytes in, size_t frame_bytes_max) {
  constexpr size_t method_bytes_min = frame_overhead_bytes + 4;
  if (in.size() < method_bytes_min || load_u32(in.data() + frame_head_bytes) != method::basic_publish)
    return {};
  const uint16_t channel = load_u16(in.data() + 1);
  const uint8_t* at = in.data();
  size_t left = in.size();
  // The size of the whole frame that is next; 0 when it is not there.
  const auto take = [&](uint8_t type) -> size_t {
    if (left < frame_overhead_bytes || at[0] != type || load_u16(at + 1) != channel) return 0;
    const size_t bytes = size_t{load_u32(at + 3)} + frame_overhead_bytes;
    if (bytes > left || bytes > frame_bytes_max + frame_grace_bytes || at[bytes - 1] != frame_end) return 0;
    at += bytes;
    left -= bytes;
    return bytes;
  };
  const size_t method_bytes = take(frame_method);
  if (method_bytes < method_bytes_min) return {};
  const uint8_t* const header = at + frame_head_bytes;
  const size_t header_bytes = take(frame_header);
  if (header_bytes < frame_overhead_bytes + header_fixed_bytes || load_u16(header) != class_basic ||
      load_u16(header + 2) != 0)
    return {};
  const size_t body_bytes = take(frame_body);
  if (body_bytes == 0 || body_bytes - frame_overhead_bytes != load_u64(header + 4)) return {};
  return WholePublish{in.data(), method_bytes, header_bytes, body_bytes, channel, load_u16(header + 12)};
}

}  // namespace bellhop::proto
