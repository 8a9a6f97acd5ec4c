#include "proto/content_header.h"

#include "proto/frame.h"
#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

constexpr size_t frame_max = 4096;

// Every property of the class, each with a value of its own.
const Buffer every_property = from_hex(
    "003C 0000 0000000000001000 FFFC"
    "0A 'text/plain'"                                              // content-type
    "04 'gzip'"                                                    // content-encoding
    "00000010 01 'a' 'S' 00000001 '1' 01 'b' 'u' 0002 01 'c' 'V'"  // headers
    "02 05"                                                        // delivery-mode, priority
    "01 'c' 01 'r' 04 '1000' 01 'm'"     // correlation-id, reply-to, expiration, message-id
    "0000000065000000"                   // timestamp
    "01 't' 05 'guest' 01 'p' 01 'x'");  // type, user-id, app-id, cluster-id

const Buffer no_property = from_hex("003C 0000 0000000000000005 0000");

ContentHeader decoded(const Buffer& payload) {
  auto header = decode_content_header(payload);
  REQUIRE(header.ok());
  return header.value();
}

// The payload of the header frame that is written.
std::string written(const Buffer& payload, const HeaderEdits& edits) {
  Buffer out = from_hex("FF");
  REQUIRE(put_content_header(out, 3, decoded(payload), edits, frame_max));
  REQUIRE(out[0] == 0xFF);
  const auto split = split_frame(Bytes(out).subspan(1), frame_max);
  REQUIRE(split.status == Split::frame);
  CHECK(split.frame.raw.size() == out.size() - 1);
  CHECK(split.frame.type == frame_header);
  CHECK(split.frame.channel == 3);
  return to_hex(split.frame.payload);
}

std::string hex(std::string_view text) {
  return to_hex(from_hex(text));
}

bool is_not_b(const void*, std::string_view name) {
  return name != "b";
}
bool is_named(const void* context, std::string_view name) {
  return name == *static_cast<const std::string_view*>(context);
}
bool is_nothing(const void*, std::string_view) {
  return false;
}

}  // namespace

TEST_CASE("every property is found", "[content_header]") {
  const auto header = decoded(every_property);
  CHECK(header.body_bytes == 4096);
  for (unsigned which = 0; which < property_count; ++which) CHECK(header.has(static_cast<Property>(which)));
  CHECK(header.text(content_type) == "text/plain");
  CHECK(header.text(content_encoding) == "gzip");
  CHECK(to_hex(header.property[delivery_mode]) == "02");
  CHECK(to_hex(header.property[priority]) == "05");
  CHECK(header.text(correlation_id) == "c");
  CHECK(header.text(reply_to) == "r");
  CHECK(header.text(expiration) == "1000");
  CHECK(header.text(message_id) == "m");
  CHECK(to_hex(header.property[timestamp]) == "00 00 00 00 65 00 00 00");
  CHECK(header.text(type) == "t");
  CHECK(header.text(user_id) == "guest");
  CHECK(header.text(app_id) == "p");
  CHECK(header.text(cluster_id) == "x");
  CHECK(header.header_fields().size() == 16);
  CHECK(table_is_well_formed(header.header_fields()));
}

TEST_CASE("absent properties are empty", "[content_header]") {
  const auto header = decoded(no_property);
  CHECK(header.body_bytes == 5);
  CHECK(!header.has(headers));
  CHECK(header.text(message_id).empty());
  CHECK(header.property[delivery_mode].empty());
  CHECK(header.header_fields().empty());
}

TEST_CASE("a header cut at any length, or with bytes behind, is an error", "[content_header]") {
  for (size_t size = 0; size < every_property.size(); ++size) {
    const Buffer cut(every_property.begin(), every_property.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(!decode_content_header(cut).ok());
  }
  Buffer longer = every_property;
  longer.push_back(0);
  CHECK(!decode_content_header(longer).ok());
}

TEST_CASE("what the specification does not allow in a header is an error", "[content_header]") {
  CHECK(!decode_content_header(from_hex("0032 0000 0000000000000005 0000")).ok());
  CHECK(!decode_content_header(from_hex("003C 0001 0000000000000005 0000")).ok());
  CHECK(!decode_content_header(from_hex("003C 0000 0000000000000005 0001 0000")).ok());
  CHECK(!decode_content_header(from_hex("003C 0000 0000000000000005 0002")).ok());
  CHECK(!decode_content_header(from_hex("003C 0000 0000000000000005 2000 FFFFFFFF")).ok());
}

TEST_CASE("a header written without edits is the header that was read", "[content_header]") {
  CHECK(written(every_property, {}) == to_hex(every_property));
  CHECK(written(no_property, {}) == to_hex(no_property));
  // A table that is malformed is none of our business while nobody asks to change it.
  const Buffer malformed = from_hex("003C 0000 0000000000000005 2000 00000003 01 'a' 'Z'");
  CHECK(written(malformed, {}) == to_hex(malformed));
}

TEST_CASE("body size, delivery mode and message id are set or replaced", "[content_header]") {
  HeaderEdits edits;
  edits.body_bytes = 39;
  edits.delivery_mode = 2;
  edits.message_id = "id";
  CHECK(written(no_property, edits) == hex("003C 0000 0000000000000027 1080 02 02 'id'"));
  const Buffer had = from_hex("003C 0000 0000000000000005 9080 01 't' 01 03 'old'");
  CHECK(written(had, edits) == hex("003C 0000 0000000000000027 9080 01 't' 02 02 'id'"));
}

TEST_CASE("expiration and user-id are dropped, and only they", "[content_header]") {
  HeaderEdits edits;
  edits.drop_expiration = edits.drop_user_id = true;
  const Buffer had = from_hex("003C 0000 0000000000000005 0198 02 '60' 01 'm' 01 'u' 01 'a'");
  CHECK(written(had, edits) == hex("003C 0000 0000000000000005 0088 01 'm' 01 'a'"));
  CHECK(written(no_property, edits) == to_hex(no_property));
}

TEST_CASE("header fields are appended behind those that are there, which stay as they are",
          "[content_header]") {
  Buffer fields;
  put_field(fields, "z", std::string_view("9"));
  HeaderEdits edits;
  edits.append = fields;
  CHECK(written(no_property, edits) ==
        hex("003C 0000 0000000000000005 2000 00000008 01 'z' 'S' 00000001 '9'"));
  const Buffer had = from_hex("003C 0000 0000000000000005 2000 00000005 01 'b' 'u' 0002");
  CHECK(written(had, edits) ==
        hex("003C 0000 0000000000000005 2000 0000000D 01 'b' 'u' 0002 01 'z' 'S' 00000001 '9'"));
}

TEST_CASE("header fields are removed by name, wherever they stand", "[content_header]") {
  const Buffer had = from_hex(
      "003C 0000 0000000000000005 2000 00000012 01 'a' 'V' 01 'b' 't' 01 01 'c' 'u' 0001 01 'b' 'V' 01 'd' "
      "'V'");
  HeaderEdits edits;
  edits.keep = is_not_b;
  CHECK(written(had, edits) ==
        hex("003C 0000 0000000000000005 2000 0000000B 01 'a' 'V' 01 'c' 'u' 0001 01 'd' 'V'"));
  const std::string_view last = "d";
  edits.keep = is_named;
  edits.keep_context = &last;
  CHECK(written(had, edits) == hex("003C 0000 0000000000000005 2000 00000003 01 'd' 'V'"));
  edits.keep = is_nothing;
  CHECK(written(had, edits) == hex("003C 0000 0000000000000005 2000 00000000"));
  Buffer fields;
  put_field(fields, "b", int64_t{7});
  edits.keep = is_not_b;
  edits.append = fields;
  CHECK(written(had, edits) ==
        hex("003C 0000 0000000000000005 2000 00000016 01 'a' 'V' 01 'c' 'u' 0001 01 'd' 'V'"
            "01 'b' 'l' 0000000000000007"));
  CHECK(written(no_property, edits) ==
        hex("003C 0000 0000000000000005 2000 0000000B 01 'b' 'l' 0000000000000007"));
}

TEST_CASE("nothing is written when a table that has to be walked is malformed", "[content_header]") {
  const Buffer malformed = from_hex("003C 0000 0000000000000005 2000 00000006 01 'a' 'V' 01 'b' 'Z'");
  HeaderEdits edits;
  edits.keep = is_not_b;
  Buffer out = from_hex("FF");
  CHECK(!put_content_header(out, 1, decoded(malformed), edits, frame_max));
  CHECK(to_hex(out) == "FF");
}

TEST_CASE("a header frame of exactly frame_max is written, one byte more is not", "[content_header]") {
  const size_t bytes = every_property.size() + frame_overhead_bytes;
  Buffer out = from_hex("FF");
  CHECK(!put_content_header(out, 1, decoded(every_property), {}, bytes - 1));
  CHECK(to_hex(out) == "FF");
  CHECK(put_content_header(out, 1, decoded(every_property), {}, bytes));
  CHECK(out.size() == 1 + bytes);
}

TEST_CASE("a header made by hand has what the edits say", "[content_header]") {
  HeaderEdits edits;
  edits.body_bytes = 1;
  edits.delivery_mode = 1;
  Buffer out;
  REQUIRE(put_content_header(out, 2, {}, edits, frame_max));
  CHECK(to_hex(out) == hex("02 0002 0000000F 003C 0000 0000000000000001 1000 01 CE"));
}
