// Frames as the tests of a session's parts write and read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/wire/outbox.h"
#include "proto/content_header.h"
#include "proto/frame.h"
#include "proto/method.h"
#include "proto/table.h"
#include "test/support/catch.h"

namespace bellhop::test {

inline void put_u16(Buffer& out, uint16_t value) {
  put(out, Buffer{static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)});
}
inline void put_u64(Buffer& out, uint64_t value) {
  put_u32(out, static_cast<uint32_t>(value >> 32));
  put_u32(out, static_cast<uint32_t>(value));
}

// A method frame; `put_arguments` appends its arguments.
template <typename Arguments>
Buffer method_frame(uint16_t channel, uint32_t number, Arguments put_arguments) {
  Buffer out;
  const size_t begin = proto::begin_frame(out, proto::frame_method, channel);
  put_u32(out, number);
  put_arguments(out);
  proto::end_frame(out, begin);
  return out;
}
inline Buffer method_frame(uint16_t channel, uint32_t number) {
  return method_frame(channel, number, [](Buffer&) {});
}

// A content header frame with a message id and these header fields (encoded).
inline Buffer header_frame(uint16_t channel, uint64_t body_bytes, std::string_view message_id = {},
                           const Buffer& fields = {}) {
  Buffer bare;
  put_u16(bare, proto::class_basic);
  put_u16(bare, 0);
  put_u64(bare, body_bytes);
  put_u16(bare, 0);
  proto::HeaderEdits edits;
  edits.message_id = message_id;
  edits.append = fields;
  Buffer out;
  REQUIRE(proto::put_content_header(out, channel, proto::decode_content_header(bare).value(), edits, 131072));
  return out;
}

inline Buffer body_frame(uint16_t channel, std::string_view body) {
  Buffer out;
  proto::put_frame(out, proto::frame_body, channel, as_bytes(body));
  return out;
}

inline Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer out;
  for (const Buffer& part : parts) put(out, part);
  return out;
}

// A content: method, header, and the body in one frame.
inline Buffer publish(uint16_t channel, std::string_view exchange, std::string_view key,
                      std::string_view body, bool mandatory = false, std::string_view message_id = {},
                      const Buffer& fields = {}) {
  Buffer method;
  proto::put_publish(method, channel, {exchange, key, mandatory, false});
  Buffer out = joined({method, header_frame(channel, body.size(), message_id, fields)});
  if (!body.empty()) put(out, body_frame(channel, body));
  return out;
}
inline Buffer deliver(uint16_t channel, std::string_view consumer, uint64_t tag, std::string_view body,
                      const Buffer& fields = {}) {
  return joined({method_frame(channel, proto::method::basic_deliver,
                              [&](Buffer& out) {
                                put_shortstr(out, consumer);
                                put_u64(out, tag);
                                out.push_back(0);
                                put_shortstr(out, "");
                                put_shortstr(out, "key");
                              }),
                 header_frame(channel, body.size(), {}, fields), body_frame(channel, body)});
}
inline Buffer claim_of(std::string_view key) {
  Buffer out = {0xAC, 0x01, 0x01};
  put(out, as_bytes(key));
  return out;
}

inline Buffer consume(uint16_t channel, std::string_view queue, std::string_view tag, bool no_ack = false) {
  return method_frame(channel, proto::method::basic_consume, [&](Buffer& out) {
    put_u16(out, 0);
    put_shortstr(out, queue);
    put_shortstr(out, tag);
    out.push_back(no_ack ? 2 : 0);
    put_u32(out, 0);
  });
}
inline Buffer named(uint16_t channel, uint32_t number, std::string_view tag) {
  return method_frame(channel, number, [&](Buffer& out) { put_shortstr(out, tag); });
}
inline Buffer cancel(uint16_t channel, std::string_view tag) {
  return method_frame(channel, proto::method::basic_cancel, [&](Buffer& out) {
    put_shortstr(out, tag);
    out.push_back(0);
  });
}
inline Buffer get(uint16_t channel, std::string_view queue, bool no_ack = false) {
  return method_frame(channel, proto::method::basic_get, [&](Buffer& out) {
    put_u16(out, 0);
    put_shortstr(out, queue);
    out.push_back(no_ack ? 1 : 0);
  });
}
inline Buffer got(uint16_t channel, uint64_t tag, std::string_view body) {
  return joined({method_frame(channel, proto::method::basic_get_ok,
                              [&](Buffer& out) {
                                put_u64(out, tag);
                                out.push_back(0);
                                put_shortstr(out, "");
                                put_shortstr(out, "key");
                                put_u32(out, 0);
                              }),
                 header_frame(channel, body.size()), body_frame(channel, body)});
}
inline Buffer ack(uint16_t channel, uint64_t tag, bool multiple = false) {
  Buffer out;
  proto::put_ack(out, channel, tag, multiple);
  return out;
}
inline Buffer close(uint16_t channel, uint16_t code, std::string_view text) {
  Buffer out;
  proto::put_close(out, proto::method::channel_close, channel, {code, text, 0, 0});
  return out;
}

inline std::vector<Buffer> split(Bytes bytes) {
  std::vector<Buffer> frames;
  while (!bytes.empty()) {
    const proto::SplitResult split = proto::split_frame(bytes, 1 << 20);
    INFO((split.problem == nullptr ? "" : split.problem));
    REQUIRE(split.status == proto::Split::frame);
    frames.emplace_back(split.frame.raw.begin(), split.frame.raw.end());
    bytes = bytes.subspan(split.frame.raw.size());
  }
  return frames;
}

// Of a content with one body frame, what has come when half of its body has.
inline Buffer half_of(const Buffer& content) {
  std::vector<Buffer> frames = split(content);
  const proto::Frame body = proto::whole_frame(frames.back());
  frames.back() = body_frame(body.channel, as_text(body.payload.first(body.payload.size() / 2)));
  Buffer out;
  for (const Buffer& frame : frames) put(out, frame);
  return out;
}

// One frame as a test compares it: "1 publish orders/new", "1 header 5", "1 body hello", "1 ack 3".
std::string shown(Bytes raw);
// All frames that wait in an outbox, which is emptied: one after the other, with ", " between.
inline std::string taken(Outbox& outbox) {
  Buffer bytes;
  while (!outbox.empty()) {
    const Bytes front = outbox.front();
    put(bytes, front);
    outbox.drop_front(front.size());
  }
  std::string out;
  for (const Buffer& frame : split(bytes)) out += (out.empty() ? "" : ", ") + shown(frame);
  return out;
}

}  // namespace bellhop::test
