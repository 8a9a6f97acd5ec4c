#include "proto/envelope.h"

#include "proto/frame.h"
#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

constexpr EnvelopeFacts facts = {"id-1", "order.new", 1788970689123, "billing@host"};

std::string envelope_of(std::string_view payload_hex, const EnvelopeFacts& given = facts) {
  const Buffer payload = from_hex(payload_hex);
  const auto header = decode_content_header(payload);
  REQUIRE(header.ok());
  Buffer out;
  put_envelope(out, header.value(), given);
  return to_hex(out);
}

std::string fields(std::string_view hex) {
  return to_hex(from_hex(hex));
}

}  // namespace

TEST_CASE("a message that has nothing gets the whole envelope", "[envelope]") {
  CHECK(envelope_of("003C 0000 0000000000000000 0000") ==
        fields("0A 'x-acemq-id' 'S' 00000004 'id-1'"
               "0C 'x-acemq-type' 'S' 00000009 'order.new'"
               "0F 'x-acemq-version' 'l' 0000000000000001"
               "13 'x-acemq-correlation' 'S' 00000004 'id-1'"
               "0F 'x-acemq-attempt' 'l' 0000000000000001"
               "12 'x-acemq-first-seen' 'l' 000001A086F66263"
               "0E 'x-acemq-origin' 'S' 0000000C 'billing@host'"));
}

TEST_CASE("type and correlation come from the app's properties first", "[envelope]") {
  // correlation-id `c`, type `t`
  const std::string envelope = envelope_of("003C 0000 0000000000000000 0420 01 'c' 01 't'");
  CHECK(envelope.find(fields("'x-acemq-type' 'S' 00000001 't'")) != std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-correlation' 'S' 00000001 'c'")) != std::string::npos);
}

TEST_CASE("without a type and a routing key the type is `message`", "[envelope]") {
  EnvelopeFacts bare = facts;
  bare.routing_key = {};
  CHECK(envelope_of("003C 0000 0000000000000000 0000", bare)
            .find(fields("'x-acemq-type' 'S' 00000007 'message'")) != std::string::npos);
}

TEST_CASE("a header that the app set is kept, whatever its type", "[envelope]") {
  const std::string envelope = envelope_of(
      "003C 0000 0000000000000000 2000 0000002A"
      "0A 'x-acemq-id' 'S' 00000003 'own'"
      "0F 'x-acemq-attempt' 'I' 00000003 00 'V'");
  CHECK(envelope.find(fields("'x-acemq-id'")) == std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-attempt'")) == std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-version'")) != std::string::npos);
  // The id is the app's, so the correlation is too.
  CHECK(envelope.find(fields("'x-acemq-correlation' 'S' 00000003 'own'")) != std::string::npos);
}

TEST_CASE("absent is absent, never empty", "[envelope]") {
  EnvelopeFacts bare = facts;
  bare.message_id = {};
  bare.origin = {};
  const std::string envelope = envelope_of("003C 0000 0000000000000000 0000", bare);
  CHECK(envelope.find(fields("'x-acemq-id'")) == std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-correlation'")) == std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-origin'")) == std::string::npos);
  CHECK(envelope.find(fields("'x-acemq-type'")) != std::string::npos);
}

TEST_CASE("a header that is among the fields already written is not written again", "[envelope]") {
  const Buffer payload = from_hex("003C 0000 0000000000000000 0000");
  const auto header = decode_content_header(payload);
  REQUIRE(header.ok());
  Buffer out;
  put_field(out, "x-acemq-origin", "fixed");
  put_field(out, "x-acemq-id", "fixed-id");
  const size_t before = out.size();
  put_envelope(out, header.value(), facts);
  CHECK(to_hex(Bytes(out).subspan(before)) == fields("0C 'x-acemq-type' 'S' 00000009 'order.new'"
                                                     "0F 'x-acemq-version' 'l' 0000000000000001"
                                                     "13 'x-acemq-correlation' 'S' 00000008 'fixed-id'"
                                                     "0F 'x-acemq-attempt' 'l' 0000000000000001"
                                                     "12 'x-acemq-first-seen' 'l' 000001A086F66263"));
}
