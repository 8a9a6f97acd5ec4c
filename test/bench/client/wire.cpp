#include "test/bench/client/wire.h"

#include <algorithm>

#include "test/bench/client/fail.h"

namespace bellhop::bench {

Writer& Writer::u8(uint8_t value) {
  out_.push_back(value);
  return *this;
}
Writer& Writer::u16(uint16_t value) {
  return u8(static_cast<uint8_t>(value >> 8)).u8(static_cast<uint8_t>(value));
}
Writer& Writer::u32(uint32_t value) {
  return u16(static_cast<uint16_t>(value >> 16)).u16(static_cast<uint16_t>(value));
}
Writer& Writer::u64(uint64_t value) {
  return u32(static_cast<uint32_t>(value >> 32)).u32(static_cast<uint32_t>(value));
}
Writer& Writer::raw(std::span<const uint8_t> bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  return *this;
}
Writer& Writer::short_string(std::string_view text) {
  if (text.size() > 255) fail("a name is longer than 255 bytes");
  u8(static_cast<uint8_t>(text.size()));
  out_.insert(out_.end(), text.begin(), text.end());
  return *this;
}
Writer& Writer::long_string(std::string_view text) {
  u32(static_cast<uint32_t>(text.size()));
  out_.insert(out_.end(), text.begin(), text.end());
  return *this;
}

void append_frame(std::vector<uint8_t>& out, uint8_t type, uint16_t channel,
                  std::span<const uint8_t> payload) {
  Writer(out).u8(type).u16(channel).u32(static_cast<uint32_t>(payload.size())).raw(payload).u8(0xCE);
}

std::span<const uint8_t> Reader::take(size_t bytes_count) {
  if (bytes_count > bytes_.size()) fail("a frame from the peer ends too early");
  auto taken = bytes_.first(bytes_count);
  bytes_ = bytes_.subspan(bytes_count);
  return taken;
}
uint16_t Reader::u16() {
  auto b = take(2);
  return static_cast<uint16_t>(b[0] << 8 | b[1]);
}
uint32_t Reader::u32() {
  const uint32_t high = u16();
  return high << 16 | u16();
}
uint64_t Reader::u64() {
  const uint64_t high = u32();
  return high << 32 | u32();
}
std::string Reader::short_string() {
  auto text = take(u8());
  return std::string(text.begin(), text.end());
}

void put_u64(uint8_t* at, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) *at++ = static_cast<uint8_t>(value >> shift);
}

std::vector<uint8_t> delivery_mode_properties(uint8_t delivery_mode) {
  std::vector<uint8_t> properties;
  Writer writer(properties);
  constexpr uint16_t kDeliveryModeFlag = 1 << 12;
  if (delivery_mode == 0) {
    writer.u16(0);
  } else {
    writer.u16(kDeliveryModeFlag).u8(delivery_mode);
  }
  return properties;
}

Message make_message(std::string_view exchange, std::string_view routing_key,
                     std::span<const uint8_t> properties, size_t body_bytes, uint32_t frame_max,
                     uint16_t channel) {
  if (body_bytes < 8) fail("a body needs at least 8 bytes for its number");
  Message message;
  std::vector<uint8_t> payload;
  Writer(payload).u32(kBasicPublish).u16(0).short_string(exchange).short_string(routing_key).u8(0);
  append_frame(message.bytes, kMethod, channel, payload);

  payload.clear();
  Writer(payload).u16(60).u16(0).u64(body_bytes).raw(properties);
  append_frame(message.bytes, kHeader, channel, payload);

  constexpr size_t kFrameHeaderBytes = 7, kFrameOverheadBytes = 8;
  message.number_offset = message.bytes.size() + kFrameHeaderBytes;
  const size_t chunk_max = frame_max - kFrameOverheadBytes;
  for (size_t left = body_bytes; left > 0;) {
    const size_t chunk = std::min(left, chunk_max);
    payload.assign(chunk, 'x');
    append_frame(message.bytes, kBody, channel, payload);
    left -= chunk;
  }
  return message;
}

}  // namespace bellhop::bench
