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

TEST_CASE("a park is the original with its dangerous properties kept as headers", "[park]") {
  // headers { CC: [x], a: 1 }, delivery mode 1, expiration 500, message id m, user id bob.
  const Buffer header = from_hex(
      "003C 0000 0000000000000002 3190"
      "00000015 02'CC' 41 00000006 53 00000001'x' 01'a' 49 00000001"
      "01 03'500' 01'm' 03'bob'");
  const Buffer body = from_hex("'hi'");
  Buffer out;
  REQUIRE(put_park(out, 5, "q.parked", header, body, "gone", "guest", 4096));

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
  proto::put_frame(expected, proto::frame_body, 5, body);
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
  REQUIRE(put_park(out, 1, "p", header, {}, std::string(2000, 'r'), "guest", 131072));

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

TEST_CASE("a header that would not fit writes nothing", "[park]") {
  const Buffer header = from_hex("003C 0000 0000000000000000 0000");
  Buffer out = from_hex("AA");
  CHECK_FALSE(put_park(out, 1, "p", header, {}, std::string(1024, 'r'), "guest", 512));
  CHECK_FALSE(put_park(out, 1, "p", from_hex("003C"), {}, "r", "guest", 4096));
  CHECK(to_hex(out) == "AA");
}
