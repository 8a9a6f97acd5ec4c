#include "proto/frame.h"

#include <algorithm>
#include <cassert>

#include "proto/writer.h"

namespace bellhop::proto {

namespace {

SplitResult problem(const char* text) {
  SplitResult result;
  result.status = Split::error;
  result.problem = text;
  return result;
}

SplitResult need(size_t bytes) {
  SplitResult result;
  result.need_bytes = bytes;
  return result;
}

}  // namespace

SplitResult split_frame(Bytes in, size_t frame_bytes_max, size_t header_frame_bytes_max) {
  if (in.size() < frame_head_bytes) return need(frame_head_bytes);
  const uint8_t type = in[0];
  const uint16_t channel = load_u16(in.data() + 1);
  const size_t payload_bytes = load_u32(in.data() + 3);
  // All that can be said of the head is said before the payload is waited for: a peer that is out of step
  // would otherwise announce gigabytes that never come.
  if (type != frame_method && type != frame_header && type != frame_body && type != frame_heartbeat) {
    return problem("the frame type is none of 1 (method), 2 (header), 3 (body) and 8 (heartbeat)");
  }
  if (payload_bytes + frame_overhead_bytes > frame_bytes_max + frame_grace_bytes &&
      (type != frame_header || payload_bytes + frame_overhead_bytes > header_frame_bytes_max)) {
    return problem("the frame is larger than the negotiated frame_max");
  }
  if (type == frame_heartbeat && payload_bytes != 0) return problem("a heartbeat with a payload");

  const size_t whole_bytes = payload_bytes + frame_overhead_bytes;
  if (in.size() < whole_bytes) return need(whole_bytes);
  if (in[whole_bytes - 1] != frame_end) return problem("the frame does not end with the octet CE");
  SplitResult result;
  result.status = Split::frame;
  result.frame = {type, channel, in.subspan(frame_head_bytes, payload_bytes), in.first(whole_bytes)};
  return result;
}

void put_frame(Buffer& out, uint8_t type, uint16_t channel, Bytes payload) {
  Writer writer(out, payload.size() + frame_overhead_bytes);
  writer.u8(type);
  writer.u16(channel);
  writer.u32(static_cast<uint32_t>(payload.size()));
  writer.bytes(payload);
  writer.u8(frame_end);
}

void put_body_frames(Buffer& out, uint16_t channel, Bytes body, size_t frame_bytes_max) {
  assert(frame_bytes_max > frame_overhead_bytes);
  const size_t payload_bytes_max = frame_bytes_max - frame_overhead_bytes;
  const size_t frames = (body.size() + payload_bytes_max - 1) / payload_bytes_max;
  out.reserve(std::max(out.capacity(), out.size() + body.size() + frames * frame_overhead_bytes));
  while (!body.empty()) {
    const Bytes part = body.first(std::min(body.size(), payload_bytes_max));
    put_frame(out, frame_body, channel, part);
    body = body.subspan(part.size());
  }
}

size_t begin_frame(Buffer& out, uint8_t type, uint16_t channel) {
  const size_t begin = out.size();
  Writer writer(out, frame_head_bytes);
  writer.u8(type);
  writer.u16(channel);
  writer.u32(0);
  return begin;
}

void end_frame(Buffer& out, size_t begin) {
  assert(begin + frame_head_bytes <= out.size());
  store_u32(out.data() + begin + 3, static_cast<uint32_t>(out.size() - begin - frame_head_bytes));
  out.push_back(frame_end);
}

}  // namespace bellhop::proto
