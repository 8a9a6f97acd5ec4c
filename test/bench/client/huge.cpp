// One message too large for memory, published, fetched again and compared byte by byte. Neither way holds
// more than a few frames: the body is a pattern that can be made anew for any position.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {
namespace {

// The body's bytes from `position` on, a multiple of 8: every word is its own position, mixed (splitmix64),
// so that a lost, doubled or moved piece cannot look right.
void fill_pattern(uint64_t position, std::span<uint8_t> out) {
  for (size_t at = 0; at < out.size(); at += 8) {
    uint64_t word = position + at + 0x9E3779B97F4A7C15;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
    std::memcpy(out.data() + at, &word, std::min<size_t>(8, out.size() - at));
  }
}

void publish_huge(Connection& connection, const Options& options) {
  std::vector<uint8_t> out, payload;
  Writer(payload)
      .u32(kBasicPublish)
      .u16(0)
      .short_string(options.exchange)
      .short_string(options.routing_key)
      .u8(0);
  append_frame(out, kMethod, 1, payload);
  payload.clear();
  Writer(payload).u16(60).u16(0).u64(options.body_bytes).raw(options.properties);
  append_frame(out, kHeader, 1, payload);

  const size_t chunk_max = (connection.frame_max() - 8) / 8 * 8;
  constexpr size_t kWriteBytes = size_t{1} << 20;
  for (uint64_t position = 0; position < options.body_bytes;) {
    payload.resize(std::min<uint64_t>(chunk_max, options.body_bytes - position));
    fill_pattern(position, payload);
    append_frame(out, kBody, 1, payload);
    position += payload.size();
    if (out.size() >= kWriteBytes || position == options.body_bytes) {
      connection.send(out);
      out.clear();
    }
  }
  Reader confirm(connection.await_method(kBasicAck));
  if (confirm.u64() != 1) fail("a confirm for another message");
}

void fetch_huge(Connection& connection, const Options& options) {
  std::vector<uint8_t> arguments, expected;
  Writer(arguments).u16(0).short_string(options.queue).u8(0);
  const uint64_t tag = Reader(connection.call(kBasicGet, arguments, kBasicGetOk)).u64();
  const Frame header = connection.await_frame();
  if (header.type != kHeader) fail("no content header behind basic.get-ok");
  Reader reader(header.payload);
  reader.skip(4);
  if (reader.u64() != options.body_bytes) fail("the body has another size");
  for (uint64_t position = 0; position < options.body_bytes;) {
    const Frame frame = connection.await_frame();
    if (frame.type != kBody) fail("something else came between a body's frames");
    if (frame.payload.size() > options.body_bytes - position) fail("the body is longer than its header says");
    const size_t ahead = position % 8;
    expected.resize(ahead + frame.payload.size());
    fill_pattern(position - ahead, expected);
    if (std::memcmp(expected.data() + ahead, frame.payload.data(), frame.payload.size()) != 0)
      fail("the body differs within the frame that starts at byte " + std::to_string(position));
    position += frame.payload.size();
  }
  arguments.clear();
  Writer(arguments).u64(tag).u8(0);
  connection.send_method(kBasicAck, arguments);
}

}  // namespace

void huge(const Options& options) {
  Connection connection(options.endpoints.at(0));
  connection.declare_queue(options.queue, options.queue_type);
  connection.select_confirms();
  Stopwatch published(options.cpu_of);
  publish_huge(connection, options);
  published.stop();
  Stopwatch fetched(options.cpu_of);
  fetch_huge(connection, options);
  fetched.stop();
  connection.reopen_channel();
  connection.await_messages(options.queue, 0);
  connection.delete_queue(options.queue);
  connection.close();
  const double mib = static_cast<double>(options.body_bytes) / (1 << 20);
  std::printf("{\"publish_mib_per_s\": %.1f, \"fetch_mib_per_s\": %.1f}\n", mib / published.seconds(),
              mib / fetched.seconds());
}

}  // namespace bellhop::bench
