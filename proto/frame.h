// AMQP 0-9-1 frames (specification section 4.2.3):
//
//   0      1         3             7                  7+size
//   +------+---------+-------------+------------------+------+
//   | type | channel |    size     |     payload      |  CE  |
//   +------+---------+-------------+------------------+------+
//
// The splitter returns only whole frames.
#pragma once

#include "proto/bytes.h"

namespace bellhop::proto {

inline constexpr uint8_t frame_method = 1;
inline constexpr uint8_t frame_header = 2;
inline constexpr uint8_t frame_body = 3;
inline constexpr uint8_t frame_heartbeat = 8;
inline constexpr uint8_t frame_end = 0xCE;
inline constexpr size_t frame_head_bytes = 7;
inline constexpr size_t frame_overhead_bytes = 8;  // head and end
// RabbitMQ takes frames whose payload, rather than the whole frame, has frame_max bytes. Some clients send
// such frames (rabbitmq-client for Node).
inline constexpr size_t frame_grace_bytes = frame_overhead_bytes;
// A broker sends each content header in one frame, however small the frames are that a client asked for, and
// x-death makes it grow beyond what its publisher could send. bellhop takes at most this much.
inline constexpr size_t broker_header_frame_bytes_max = size_t{1024} * 1024;
inline constexpr uint32_t frame_min_bytes = 4096;  // every peer takes at least this, also before tune
inline constexpr uint8_t protocol_header[8] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};
// The header of AMQP 0-9. RabbitMQ takes it for 0-9-1, and AnyEvent::RabbitMQ sends it.
inline constexpr uint8_t protocol_header_0_9[8] = {'A', 'M', 'Q', 'P', 1, 1, 0, 9};
inline constexpr uint8_t heartbeat_frame[8] = {frame_heartbeat, 0, 0, 0, 0, 0, 0, frame_end};

// Borrows from the bytes it was split from.
struct Frame {
  uint8_t type = 0;
  uint16_t channel = 0;
  Bytes payload;
  Bytes raw;  // head, payload and end
};

enum class Split { frame, need_more, error };

struct SplitResult {
  Split status = Split::need_more;
  Frame frame;  // status frame
  size_t need_bytes =
      0;  // status need_more: the whole frame's size if its head is there, else frame_head_bytes
  const char* problem = "";  // status error: what is wrong, for a 501 FRAME_ERROR
};

// Takes the first frame off `in`. Errors: a type that is not 1, 2, 3 or 8; a frame of more than
// frame_bytes_max + frame_grace_bytes bytes with its overhead; an end octet that is not CE; a heartbeat that
// is not on channel 0 or not empty. A content header may have header_frame_bytes_max bytes where that is
// more.
SplitResult split_frame(Bytes in, size_t frame_bytes_max, size_t header_frame_bytes_max = 0);

// A whole frame that was kept, as split_frame gave it. Precondition: `raw` is one.
inline Frame whole_frame(Bytes raw) {
  return {raw[0], load_u16(raw.data() + 1), raw.subspan(frame_head_bytes, raw.size() - frame_overhead_bytes),
          raw};
}

void put_frame(Buffer& out, uint8_t type, uint16_t channel, Bytes payload);

// Writes `body` as body frames, none of more than frame_bytes_max bytes with its overhead. Precondition:
// frame_bytes_max > 8.
void put_body_frames(Buffer& out, uint16_t channel, Bytes body, size_t frame_bytes_max);

// Opens a frame; append its payload to `out`, then end_frame() writes the size and the end octet. Returns the
// position for end_frame().
size_t begin_frame(Buffer& out, uint8_t type, uint16_t channel);
void end_frame(Buffer& out, size_t begin);

}  // namespace bellhop::proto
