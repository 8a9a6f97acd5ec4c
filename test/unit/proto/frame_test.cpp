#include "proto/frame.h"

#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

constexpr size_t frame_max = 4096;

std::string problem_of(const Buffer& in) {
  const auto result = split_frame(in, frame_max);
  return result.status == Split::error ? result.problem : "";
}

}  // namespace

TEST_CASE("a whole frame is taken off the front of the bytes", "[frame]") {
  const Buffer in = from_hex("03 0007 00000003 'abc' CE 08 0000");
  const auto result = split_frame(in, frame_max);
  REQUIRE(result.status == Split::frame);
  CHECK(result.frame.type == frame_body);
  CHECK(result.frame.channel == 7);
  CHECK(as_text(result.frame.payload) == "abc");
  CHECK(to_hex(result.frame.raw) == "03 00 07 00 00 00 03 61 62 63 CE");
}

TEST_CASE("frames cut at every boundary come out whole once they are whole", "[frame]") {
  const Buffer in = from_hex(
      "01 0001 00000004 00140028 CE"
      "02 0001 00000001 AA CE"
      "08 0000 00000000 CE");
  for (size_t have = 0; have <= in.size(); ++have) {
    Bytes rest = Bytes(in).first(have);
    size_t frames = 0;
    SplitResult result = split_frame(rest, frame_max);
    while (result.status == Split::frame) {
      ++frames;
      rest = rest.subspan(result.frame.raw.size());
      result = split_frame(rest, frame_max);
    }
    REQUIRE(result.status == Split::need_more);
    CHECK(frames == (have >= 12 ? 1u : 0u) + (have >= 21 ? 1u : 0u) + (have >= 29 ? 1u : 0u));
    CHECK(result.need_bytes > rest.size());
    // What is asked for is enough: the head first, then the frame.
    CHECK(result.need_bytes ==
          (rest.size() < frame_head_bytes ? frame_head_bytes : load_u32(rest.data() + 3) + 8));
  }
}

TEST_CASE("a payload of frame_max bytes passes, as at RabbitMQ, one byte more does not", "[frame]") {
  Buffer in;
  put_frame(in, frame_body, 1, Buffer(frame_max, 'x'));
  CHECK(split_frame(in, frame_max).status == Split::frame);
  in.clear();
  put_frame(in, frame_body, 1, Buffer(frame_max + 1, 'x'));
  CHECK(split_frame(in, frame_max).status == Split::error);
}

TEST_CASE("a frame that is too large is refused at its head, before its payload is waited for", "[frame]") {
  CHECK(problem_of(from_hex("03 0001 FFFFFFFF")).find("frame_max") != std::string::npos);
}

TEST_CASE("what is no frame is refused with its reason", "[frame]") {
  CHECK(problem_of(from_hex("04 0001 00000000 CE")).find("frame type") != std::string::npos);
  CHECK(problem_of(from_hex("'AMQP' 00 00 09 01")).find("frame type") != std::string::npos);
  CHECK(problem_of(from_hex("01 0001 00000000 CD")).find("CE") != std::string::npos);
  CHECK(problem_of(from_hex("08 0000 00000001 00 CE")).find("heartbeat") != std::string::npos);
}

TEST_CASE("the constant heartbeat is a frame", "[frame]") {
  const auto result = split_frame(heartbeat_frame, frame_max);
  REQUIRE(result.status == Split::frame);
  CHECK(result.frame.type == frame_heartbeat);
}

TEST_CASE("a frame is opened, filled and closed after bytes that were there", "[frame]") {
  Buffer out = from_hex("FF");
  const size_t begin = begin_frame(out, frame_method, 0x0102);
  put_u32(out, 0xA1A2A3A4);
  end_frame(out, begin);
  CHECK(to_hex(out) == "FF 01 01 02 00 00 00 04 A1 A2 A3 A4 CE");
}

TEST_CASE("a body becomes as many body frames as it needs", "[frame]") {
  constexpr size_t small_max = 12;  // four bytes of body a frame
  const auto frames_of = [](std::string_view body) {
    Buffer out;
    put_body_frames(out, 2, as_bytes(body), small_max);
    return to_hex(out);
  };
  CHECK(frames_of("").empty());
  CHECK(frames_of("abcd") == "03 00 02 00 00 00 04 61 62 63 64 CE");
  CHECK(frames_of("abcde") == "03 00 02 00 00 00 04 61 62 63 64 CE 03 00 02 00 00 00 01 65 CE");
  Buffer out;
  put_body_frames(out, 2, Buffer(1000, 'x'), small_max);
  CHECK(out.size() == 1000 + 250 * frame_overhead_bytes);
}

TEST_CASE("a content header may be larger than other frames, where that is allowed", "[frame]") {
  Buffer header, body;
  put_frame(header, frame_header, 1, Buffer(9000, 'h'));
  put_frame(body, frame_body, 1, Buffer(9000, 'b'));
  CHECK(split_frame(header, frame_max).status == Split::error);
  CHECK(split_frame(header, frame_max, 9008).status == Split::frame);
  CHECK(split_frame(header, frame_max, 9007).status == Split::error);
  CHECK(split_frame(body, frame_max, 9008).status == Split::error);
}
