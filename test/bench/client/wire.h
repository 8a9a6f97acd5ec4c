// The few AMQP 0-9-1 bytes that the bench client needs, written and read without a library. Independent of
// proto/ on purpose: a codec that measured itself would hide its own faults.
//
//   frame:  type u8 | channel u16 | size u32 | payload (size bytes) | 0xCE
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bellhop::bench {

enum FrameType : uint8_t { kMethod = 1, kHeader = 2, kBody = 3, kHeartbeat = 8 };

// A method's class and method number in one value, so that a switch can tell them apart.
constexpr uint32_t method_id(uint16_t class_id, uint16_t method) {
  return static_cast<uint32_t>(class_id) << 16 | method;
}

constexpr uint32_t kConnectionStart = method_id(10, 10), kConnectionStartOk = method_id(10, 11),
                   kConnectionTune = method_id(10, 30), kConnectionTuneOk = method_id(10, 31),
                   kConnectionOpen = method_id(10, 40), kConnectionOpenOk = method_id(10, 41),
                   kConnectionClose = method_id(10, 50), kConnectionCloseOk = method_id(10, 51),
                   kChannelOpen = method_id(20, 10), kChannelOpenOk = method_id(20, 11),
                   kChannelClose = method_id(20, 40), kChannelCloseOk = method_id(20, 41),
                   kExchangeDeclare = method_id(40, 10), kExchangeDeclareOk = method_id(40, 11),
                   kQueueDeclare = method_id(50, 10), kQueueDeclareOk = method_id(50, 11),
                   kQueueBind = method_id(50, 20), kQueueBindOk = method_id(50, 21),
                   kQueueDelete = method_id(50, 40), kQueueDeleteOk = method_id(50, 41),
                   kBasicQos = method_id(60, 10), kBasicQosOk = method_id(60, 11),
                   kBasicConsume = method_id(60, 20), kBasicConsumeOk = method_id(60, 21),
                   kBasicPublish = method_id(60, 40), kBasicReturn = method_id(60, 50),
                   kBasicDeliver = method_id(60, 60), kBasicGet = method_id(60, 70),
                   kBasicGetOk = method_id(60, 71), kBasicAck = method_id(60, 80),
                   kBasicNack = method_id(60, 120), kConfirmSelect = method_id(85, 10),
                   kConfirmSelectOk = method_id(85, 11);

// Appends big-endian values to a byte vector.
class Writer {
 public:
  explicit Writer(std::vector<uint8_t>& out) : out_(out) {}
  Writer& u8(uint8_t value);
  Writer& u16(uint16_t value);
  Writer& u32(uint32_t value);
  Writer& u64(uint64_t value);
  Writer& raw(std::span<const uint8_t> bytes);
  Writer& short_string(std::string_view text);
  Writer& long_string(std::string_view text);

 private:
  std::vector<uint8_t>& out_;
};

// Appends one whole frame.
void append_frame(std::vector<uint8_t>& out, uint8_t type, uint16_t channel,
                  std::span<const uint8_t> payload);

// Reads big-endian values; a read past the end ends the process, because then the peer's frame is broken.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint8_t u8() { return take(1)[0]; }
  uint16_t u16();
  uint32_t u32();
  uint64_t u64();
  std::string short_string();
  void skip(size_t bytes_count) { take(bytes_count); }
  std::span<const uint8_t> rest() { return take(bytes_.size()); }

 private:
  std::span<const uint8_t> take(size_t bytes_count);
  std::span<const uint8_t> bytes_;
};

struct Frame {
  uint8_t type = 0;
  uint16_t channel = 0;
  std::span<const uint8_t> payload;  // valid until the connection reads again

  // Of a method frame.
  uint32_t method() const { return Reader(payload).u32(); }
};

// One publish as it goes over the wire: basic.publish, content header, body frames of at most frame_max
// bytes.
struct Message {
  std::vector<uint8_t> bytes;
  size_t number_offset = 0;  // where the body's first eight bytes stand: the message's number, big-endian
};

// `properties` is what follows the body size in a content header: the flags and the property list. The body
// holds no byte that would make it look like a claim frame. Requires body_bytes >= 8.
Message make_message(std::string_view exchange, std::string_view routing_key,
                     std::span<const uint8_t> properties, size_t body_bytes, uint32_t frame_max,
                     uint16_t channel = 1);

// Flags and list with the delivery mode alone; 0 leaves it out.
std::vector<uint8_t> delivery_mode_properties(uint8_t delivery_mode);

void put_u64(uint8_t* at, uint64_t value);

}  // namespace bellhop::bench
