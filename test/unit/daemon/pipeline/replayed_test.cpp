#include "daemon/pipeline/replayed.h"

#include "proto/content_header.h"
#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using bellhop::test::from_hex;

namespace {

constexpr size_t frame_bytes_max = 131072;

// A content header with these fields and, in this order of the flags, no other property.
Buffer header_with(const Buffer& fields) {
  Buffer out = from_hex("003C 0000 0000000000000005 2000");
  put_longstr(out, as_text(fields));
  return out;
}

std::optional<std::string> text_of(Bytes header_payload, std::string_view name) {
  const auto header = proto::decode_content_header(header_payload);
  const auto field = proto::find_field(header.value().header_fields(), name);
  if (!field) return std::nullopt;
  return proto::field_text(*field).value_or(std::string(1, field->type));
}

const Replay replay{"orders.parked", "2026-12-01T03:00:00Z", "guest", false};

}  // namespace

TEST_CASE("a replay undoes what parking changed", "[replayed]") {
  // headers { x-acemq-error: why, a: 1, bellhop-cc: [x], bellhop-expiration: 500, bellhop-user-id: guest },
  // mode 2
  Buffer fields;
  proto::put_field(fields, "x-acemq-error", "why");
  proto::put_field(fields, "a", int64_t{1});
  put(fields, from_hex("0a'bellhop-cc' 41 00000006 53 00000001'x'"));
  put(fields, from_hex("0b'bellhop-bcc' 41 00000006 53 00000001'y'"));
  proto::put_field(fields, "bellhop-expiration", "500");
  proto::put_field(fields, "bellhop-user-id", "guest");
  proto::put_field(fields, "bellhop-claim-key", "k");
  const auto out = replayed_header(header_with(fields), replay, frame_bytes_max);
  REQUIRE(out);
  const auto header = proto::decode_content_header(*out);
  REQUIRE(header);
  CHECK(header.value().body_bytes == 5);
  CHECK(header.value().text(proto::expiration) == "500");
  CHECK(header.value().text(proto::user_id) == "guest");
  CHECK(text_of(*out, "a") == "1");
  CHECK(text_of(*out, "CC") == "A");
  CHECK(text_of(*out, "BCC") == "A");
  CHECK(text_of(*out, "bellhop-claim-key") == "k");
  for (const char* gone :
       {"x-acemq-error", "bellhop-cc", "bellhop-bcc", "bellhop-expiration", "bellhop-user-id"}) {
    INFO(gone);
    CHECK_FALSE(text_of(*out, gone));
  }
}

TEST_CASE("a replay says where it was taken from, when, and how often", "[replayed]") {
  const auto first = replayed_header(header_with({}), replay, frame_bytes_max);
  REQUIRE(first);
  CHECK(text_of(*first, "acemq-replayed-from") == "orders.parked");
  CHECK(text_of(*first, "acemq-replayed-at") == "2026-12-01T03:00:00Z");
  CHECK(text_of(*first, "acemq-replay-count") == "1");
  const auto second = replayed_header(*first, replay, frame_bytes_max);
  REQUIRE(second);
  CHECK(text_of(*second, "acemq-replay-count") == "2");
}

TEST_CASE("what belongs to the failure that is over goes, and attempts begin anew", "[replayed]") {
  Buffer fields;
  put(fields, from_hex("07'x-death' 41 00000000"));
  proto::put_field(fields, "x-first-death-queue", "orders");
  proto::put_field(fields, "x-last-death-reason", "rejected");
  proto::put_field(fields, "x-delivery-count", int64_t{3});
  proto::put_field(fields, "x-acquired-count", int64_t{3});
  proto::put_field(fields, "x-acemq-attempt", int64_t{5});
  proto::put_field(fields, "x-acemq-route-id", "run");
  const auto out = replayed_header(header_with(fields), replay, frame_bytes_max);
  REQUIRE(out);
  for (const char* gone :
       {"x-death", "x-first-death-queue", "x-last-death-reason", "x-delivery-count", "x-acquired-count"}) {
    INFO(gone);
    CHECK_FALSE(text_of(*out, gone));
  }
  CHECK(text_of(*out, "x-acemq-attempt") == "1");
  CHECK(text_of(*out, "x-acemq-route-id") == "run");
}

TEST_CASE("another user's name stays a header, or becomes one: the broker would refuse it", "[replayed]") {
  Buffer fields;
  proto::put_field(fields, "bellhop-user-id", "bob");
  const auto kept = replayed_header(header_with(fields), replay, frame_bytes_max);
  REQUIRE(kept);
  CHECK(text_of(*kept, "bellhop-user-id") == "bob");
  CHECK_FALSE(proto::decode_content_header(*kept).value().has(proto::user_id));
  const auto renamed =
      replayed_header(from_hex("003C 0000 0000000000000000 0010 03'bob'"), replay, frame_bytes_max);
  REQUIRE(renamed);
  CHECK(text_of(*renamed, "bellhop-user-id") == "bob");
  CHECK_FALSE(proto::decode_content_header(*renamed).value().has(proto::user_id));
  const auto own =
      replayed_header(from_hex("003C 0000 0000000000000000 0010 05'guest'"), replay, frame_bytes_max);
  REQUIRE(own);
  CHECK(proto::decode_content_header(*own).value().text(proto::user_id) == "guest");
}

TEST_CASE("without CC no copies go anywhere, and the header keeps what it was", "[replayed]") {
  Buffer fields;
  put(fields, from_hex("02'CC' 41 00000006 53 00000001'x'"));
  Replay without = replay;
  without.without_cc = true;
  const auto out = replayed_header(header_with(fields), without, frame_bytes_max);
  REQUIRE(out);
  CHECK_FALSE(text_of(*out, "CC"));
  CHECK(text_of(*out, "bellhop-cc") == "A");
}

TEST_CASE("where the stamps do not fit the message goes without them, and one too large not at all",
          "[replayed]") {
  Buffer fields;
  proto::put_field(fields, "a", std::string(200, 'a'));
  const auto without = replayed_header(header_with(fields), replay, 260);
  REQUIRE(without);
  CHECK(text_of(*without, "a") == std::string(200, 'a'));
  CHECK_FALSE(text_of(*without, "acemq-replayed-from"));
  CHECK_FALSE(replayed_header(header_with(fields), replay, 100));
  CHECK_FALSE(replayed_header(from_hex("003C"), replay, frame_bytes_max));
}

TEST_CASE("a copy in the same queue is as the message was, and spreads nowhere", "[replayed]") {
  Buffer fields;
  put(fields, from_hex("02'CC' 41 00000006 53 00000001'x'"));
  proto::put_field(fields, "x-acemq-error", "why");
  proto::put_field(fields, "x-delivery-count", int64_t{20});
  const auto out = copied_header(header_with(fields), "guest", frame_bytes_max);
  REQUIRE(out);
  CHECK(text_of(*out, "x-acemq-error") == "why");
  CHECK(text_of(*out, "bellhop-cc") == "A");
  CHECK_FALSE(text_of(*out, "CC"));
  CHECK_FALSE(text_of(*out, "x-delivery-count"));
}
