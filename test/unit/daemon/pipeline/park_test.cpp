#include "daemon/pipeline/park.h"

#include "proto/frame.h"
#include "proto/method.h"
#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using bellhop::test::from_hex;
using bellhop::test::to_hex;

TEST_CASE("a queue's messages park beside it, those of queues that go away in one of bellhop's", "[park]") {
  CHECK(parked_queue_of("orders", false) == "orders.parked");
  CHECK(parked_queue_of("orders", true) == "bellhop.parked");
  CHECK(parked_queue_of("amq.gen-abc", false) == "bellhop.parked");
  CHECK(parked_queue_of("", false) == "bellhop.parked");
  CHECK(parked_queue_of(std::string(248, 'q'), false) == std::string(248, 'q') + ".parked");
  CHECK(parked_queue_of(std::string(249, 'q'), false) == "bellhop.parked");
}

TEST_CASE("a parked queue is known by its name, and nothing is parked beside it", "[park]") {
  CHECK(is_parked_queue("orders.parked"));
  CHECK(is_parked_queue("bellhop.parked"));
  CHECK_FALSE(is_parked_queue("orders.parked.old"));
  CHECK_FALSE(is_parked_queue("parked"));
  CHECK(parked_queue_of("orders.parked", false) == "bellhop.parked");
  CHECK(parked_queue_of("bellhop.parked", false) == "bellhop.parked");
}

TEST_CASE("a park is the original with its dangerous properties kept as headers", "[park]") {
  // headers { CC: [x], a: 1 }, delivery mode 1, expiration 500, message id m, user id bob.
  const Buffer header = from_hex(
      "003C 0000 0000000000000002 3190"
      "00000015 02'CC' 41 00000006 53 00000001'x' 01'a' 49 00000001"
      "01 03'500' 01'm' 03'bob'");
  const Buffer body = from_hex("'hi'");
  Buffer out;
  REQUIRE(put_park(out, 5, "q.parked", header, body.size(), "gone", "guest", 4096));

  Buffer expected;
  proto::put_publish(expected, 5, {"", "q.parked", true, false});
  // What was removed is headers now; everything of bellhop's stands behind what was there.
  Buffer fields = from_hex("01'a' 49 00000001 0A'bellhop-cc' 41 00000006 53 00000001'x'");
  proto::put_field(fields, "bellhop-user-id", "bob");
  proto::put_field(fields, "bellhop-expiration", "500");
  proto::put_field(fields, "x-acemq-error", "gone");
  Buffer payload = from_hex("003C 0000 0000000000000002 3080");
  put_u32(payload, static_cast<uint32_t>(fields.size()));
  put(payload, fields);
  put(payload, from_hex("02 01'm'"));
  proto::put_frame(expected, proto::frame_header, 5, payload);
  REQUIRE(to_hex(out) == to_hex(expected));
}

TEST_CASE("the connection's own user id stays, and an older reason is replaced", "[park]") {
  Buffer fields;
  proto::put_field(fields, "x-acemq-error", "older");
  Buffer header = from_hex("003C 0000 0000000000000000 2010");
  put_u32(header, static_cast<uint32_t>(fields.size()));
  put(header, fields);
  put(header, from_hex("05'guest'"));
  Buffer out;
  REQUIRE(put_park(out, 1, "p", header, 0, std::string(2000, 'r'), "guest", 131072));

  Buffer reason;
  proto::put_field(reason, "x-acemq-error", std::string(1024, 'r'));
  Buffer payload = from_hex("003C 0000 0000000000000000 3010");
  put_u32(payload, static_cast<uint32_t>(reason.size()));
  put(payload, reason);
  put(payload, from_hex("02 05'guest'"));
  Buffer expected;
  proto::put_publish(expected, 1, {"", "p", true, false});
  proto::put_frame(expected, proto::frame_header, 1, payload);
  REQUIRE(to_hex(out) == to_hex(expected));
}

namespace {

Buffer header_with(const Buffer& fields) {
  Buffer header = from_hex("003C 0000 0000000000000000 2000");
  put_u32(header, static_cast<uint32_t>(fields.size()));
  put(header, fields);
  return header;
}

// The names of a park's headers, and the bytes of its reason; nothing when it does not fit.
std::string park_in(size_t frame_bytes_max, const Buffer& header, std::string_view reason) {
  Buffer out;
  if (!put_park(out, 1, "p", header, 0, reason, "guest", frame_bytes_max)) return "does not fit";
  const proto::Frame publish = proto::split_frame(out, 4096).frame;
  const proto::Frame frame = proto::split_frame(Bytes(out).subspan(publish.raw.size()), 1 << 20).frame;
  CHECK(frame.raw.size() <= frame_bytes_max);
  std::string names;
  const auto content = proto::decode_content_header(frame.payload).value();
  proto::TableCursor cursor(content.header_fields());
  while (const auto field = cursor.next()) {
    names += std::string(names.empty() ? "" : " ") + std::string(field->name);
    if (field->name == error_header) names += ":" + std::to_string(proto::field_string(*field)->size());
  }
  return names;
}

}  // namespace

TEST_CASE("where a park does not fit, its reason is shortened and then what is optional goes", "[park]") {
  Buffer fields;
  proto::put_field(fields, "app", std::string(400, 'a'));
  proto::put_field(fields, "x-death", std::string(300, 'd'));
  proto::put_field(fields, "x-first-death-queue", std::string(10, 'q'));
  proto::put_field(fields, "bellhop-claim-key", std::string(36, 'k'));
  proto::put_field(fields, "x-acemq-error", "an older one");
  const Buffer header = header_with(fields);
  const std::string reason(5000, 'r'),
      all = "app x-death x-first-death-queue bellhop-claim-key x-acemq-error:";
  CHECK(park_in(4096, header, reason) == all + "1024");
  CHECK(park_in(1500, header, reason) == all + "100");
  CHECK(park_in(700, header, reason) == "app bellhop-claim-key x-acemq-error:100");
  CHECK(park_in(580, header, reason) == "app x-acemq-error:100");
  CHECK(park_in(480, header, reason) == "app");
  CHECK(park_in(400, header, reason) == "does not fit");
}

TEST_CASE("without a reason of its own a park keeps the one that is there", "[park]") {
  Buffer fields;
  proto::put_field(fields, "x-acemq-error", "the first one");
  CHECK(park_in(4096, header_with(fields), "") == "x-acemq-error:13");
  CHECK(park_in(4096, header_with({}), "").empty());
}

TEST_CASE("what cannot be read to its end is not parkable", "[park]") {
  CHECK(is_parkable(from_hex("003C 0000 0000000000000000 0000")));
  CHECK_FALSE(is_parkable(from_hex("003C 0000 0000000000000000 0002")));
  CHECK_FALSE(is_parkable(from_hex("003C 0000 0000000000000000 2000 00000003 01'a' 7F")));
}

TEST_CASE("a header that does not fit in any form writes nothing", "[park]") {
  Buffer fields;
  proto::put_field(fields, "app", std::string(600, 'a'));
  Buffer out = from_hex("AA");
  CHECK_FALSE(put_park(out, 1, "p", header_with(fields), 0, "r", "guest", 512));
  CHECK_FALSE(put_park(out, 1, "p", from_hex("003C"), 0, "r", "guest", 4096));
  CHECK(to_hex(out) == "AA");
}
