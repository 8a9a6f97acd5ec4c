// The frame splitter, and every method decoder on what it splits off. Promised: a frame is whole or not there
// yet, and what a decoder of the hot path took is written as bytes that it takes again and reads the same.
#include "proto/frame.h"

#include "proto/method.h"
#include "proto/whole_publish.h"
#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

namespace {

constexpr size_t frame_max = 4096;

Buffer payload_of(const Buffer& written) {
  const auto split = split_frame(written, 1 << 20);
  check(split.status == Split::frame && split.frame.raw.size() == written.size());
  return Buffer(split.frame.payload.begin(), split.frame.payload.end());
}

// Reads, writes, reads and writes again: from the first writing on nothing may change.
template <typename Decode, typename Put>
void settles(Bytes payload, Decode decode, Put put) {
  const auto first = decode(payload);
  if (!first.ok()) {
    check(!first.error().empty());
    return;
  }
  Buffer once, twice;
  put(once, first.value());
  const Buffer payload_once = payload_of(once);
  const auto second = decode(Bytes(payload_once));
  check(second.ok());
  put(twice, second.value());
  check(once == twice);
}

void decode_every_way(Bytes payload) {
  const uint32_t number = method_number(payload);
  if (number == 0) return;
  settles(payload, decode_publish, [](Buffer& out, const Publish& value) { put_publish(out, 1, value); });
  settles(payload, decode_return, [](Buffer& out, const Return& value) { put_return(out, 1, value); });
  settles(payload, decode_close,
          [&](Buffer& out, const Close& value) { put_close(out, method::channel_close, 1, value); });
  settles(payload, decode_tune,
          [](Buffer& out, const Tune& value) { put_tune(out, method::connection_tune, value); });
  (void)decode_deliver(payload).ok();
  (void)decode_get_ok(payload).ok();
  (void)decode_settle(payload).ok();

  settles(payload, decode_start_ok, [](Buffer& out, const StartOk& value) { put_start_ok(out, value); });
  settles(payload, decode_open, [](Buffer& out, const std::string& value) { put_open(out, value); });
  settles(payload, decode_get, [](Buffer& out, const Get& value) { put_get(out, 1, value); });
  settles(payload, decode_queue_declare,
          [](Buffer& out, const QueueDeclare& value) { put_queue_declare(out, 1, value.queue, true); });
  (void)decode_start_mechanisms(payload).ok();
  (void)decode_consume(payload).ok();
  (void)decode_consume_ok(payload).ok();
  (void)decode_queue_declare_ok(payload).ok();
  (void)decode_queue_delete(payload).ok();
  (void)decode_named_exchanges(payload).ok();
}

// What is found as a whole publish are three frames that the splitter finds as well.
void look_for_whole_publish(Bytes in) {
  const auto whole = whole_publish(in, frame_max);
  if (!whole) return;
  Bytes rest = in;
  for (const uint8_t type : {frame_method, frame_header, frame_body}) {
    const auto split = split_frame(rest, frame_max);
    check(split.status == Split::frame && split.frame.type == type && split.frame.channel == whole->channel);
    rest = rest.subspan(split.frame.raw.size());
  }
  check(whole->raw().data() == in.data() && whole->raw().size() == in.size() - rest.size());
  const Buffer header = payload_of(Buffer(whole->header().begin(), whole->header().end()));
  if (const auto decoded = decode_content_header(header)) {
    check(decoded.value().flags == whole->flags);
    check(decoded.value().body_bytes == whole->body().size() - frame_overhead_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes in(data, size);
  // As a payload by itself, so that a method need not hide behind a valid frame.
  decode_every_way(in);

  Bytes rest = in;
  while (true) {
    look_for_whole_publish(rest);
    const auto split = split_frame(rest, frame_max);
    if (split.status == Split::error) {
      check(*split.problem != '\0');
      break;
    }
    if (split.status == Split::need_more) {
      check(split.need_bytes > rest.size() && split.need_bytes <= frame_max + frame_grace_bytes);
      break;
    }
    check(split.frame.raw.size() == split.frame.payload.size() + frame_overhead_bytes);
    check(split.frame.raw.size() <= rest.size() && split.frame.raw.size() <= frame_max + frame_grace_bytes);
    Buffer again;
    put_frame(again, split.frame.type, split.frame.channel, split.frame.payload);
    check(fuzz::same(again, split.frame.raw));
    if (split.frame.type == frame_method) decode_every_way(split.frame.payload);
    rest = rest.subspan(split.frame.raw.size());
  }
  return 0;
}
