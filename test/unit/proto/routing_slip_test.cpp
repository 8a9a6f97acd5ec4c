#include "proto/routing_slip.h"

#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

constexpr std::string_view run = "0f8fad5b-d9cb-469f-a165-70867728950e";
constexpr std::string_view fresh = "11111111-2222-4333-8444-555555555555";

std::optional<RoutingSlip> slip_of(const Buffer& fields) {
  return RoutingSlip::from(fields, fresh);
}

// A slip of three steps whose position field is `position`, encoded: its type and its value.
RoutingSlip at_position(std::string_view position) {
  Buffer fields;
  put_field(fields, slip_route_header, std::string_view("validate,charge,ship"));
  put_field(fields, slip_id_header, run);
  if (!position.empty()) {
    put_shortstr(fields, slip_position_header);
    put(fields, from_hex(position));
  }
  auto slip = slip_of(fields);
  REQUIRE(slip);
  return *slip;
}

std::vector<std::string> steps_of(std::string_view route) {
  Buffer fields;
  put_field(fields, slip_route_header, route);
  const auto slip = slip_of(fields);
  return slip ? slip->steps() : std::vector<std::string>{};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a fresh slip is at position 0, which is written", "[routing_slip]") {
  const auto slip = RoutingSlip::start_of({"validate", "charge"}, std::string(run));
  REQUIRE(slip.ok());
  Buffer out;
  slip.value().to_headers(out);
  CHECK(to_hex(out) ==
        to_hex(from_hex("0D 'x-acemq-route' 'S' 0000000F 'validate,charge'"
                        "16 'x-acemq-route-position' 'l' 0000000000000000"
                        "10 'x-acemq-route-id' 'S' 00000024 '0f8fad5b-d9cb-469f-a165-70867728950e'")));
  CHECK(slip.value().current() == "validate");
  CHECK(slip.value().next() == "charge");
  CHECK(!slip.value().is_finished());
}

TEST_CASE("a slip walks its steps to the end and keeps its run", "[routing_slip]") {
  RoutingSlip slip = at_position("'l' 0000000000000000");
  CHECK(slip.run_id() == run);
  CHECK(slip.current() == "validate");
  slip.advance();
  CHECK(slip.current() == "charge");
  CHECK(slip.next() == "ship");
  slip.advance();
  CHECK(slip.current() == "ship");
  CHECK(!slip.next());
  CHECK(!slip.is_finished());
  slip.advance();
  CHECK(slip.is_finished());
  CHECK(!slip.current());
  CHECK(!slip.next());
  CHECK(slip.position() == 3);
  slip.advance_to(1);
  CHECK(slip.current() == "charge");

  // What it writes, it reads.
  Buffer fields;
  slip.to_headers(fields);
  const auto read = slip_of(fields);
  REQUIRE(read);
  CHECK(read->steps() == Names{"validate", "charge", "ship"});
  CHECK(read->position() == 1);
  CHECK(read->run_id() == run);
}

TEST_CASE("a position is an integer of any width, a float's whole part, or decimal text", "[routing_slip]") {
  for (const char* one :
       {"'b' 01", "'B' 01", "'s' 0001", "'u' 0001", "'I' 00000001", "'i' 00000001", "'l' 0000000000000001",
        "'L' 0000000000000001", "'T' 0000000000000001", "'S' 00000001 '1'", "'S' 00000002 '01'",
        "'S' 00000003 ' 1 '", "'x' 00000001 '1'", "'x' 00000002 '01'", "'f' 3F800000", "'f' 3FFFFFFF",
        "'d' 3FF0000000000000", "'d' 3FFFFFFFFFFFFFFF"}) {
    INFO(one);
    CHECK(at_position(one).position() == 1);
    CHECK(at_position(one).current() == "charge");
  }
}

TEST_CASE("a position that is missing, unreadable or negative is 0", "[routing_slip]") {
  for (const char* zero : {"",
                           "'V'",
                           "'S' 00000000",
                           "'S' 00000003 'one'",
                           "'S' 00000003 '1.0'",
                           "'x' 00000000",
                           "'x' 00000002 '-1'",
                           "'x' 00000003 'one'",
                           "'f' 00000000",
                           "'f' BF800000",
                           "'f' 7F800000",
                           "'f' 7FC00000",
                           "'d' 3FEFFFFFFFFFFFFF",
                           "'d' C000000000000000",
                           "'d' 7FF0000000000000",
                           "'d' 7FF8000000000000",
                           "'F' 00000000",
                           "'b' FF",
                           "'s' FFFF",
                           "'I' FFFFFFFF",
                           "'l' FFFFFFFFFFFFFFFF",
                           "'S' 00000002 '-1'",
                           "'S' 00000014 '99999999999999999999'"}) {
    INFO(zero);
    CHECK(at_position(zero).position() == 0);
    CHECK(!at_position(zero).is_finished());
  }
}

TEST_CASE("a position past the end is finished", "[routing_slip]") {
  for (const char* past :
       {"'B' 03", "'B' FF", "'i' FFFFFFFF", "'l' 7FFFFFFFFFFFFFFF", "'L' FFFFFFFFFFFFFFFF",
        "'S' 00000013 '9223372036854775807'", "'x' 00000001 '3'", "'f' 40400000", "'f' 7F7FFFFF",
        "'d' 4008000000000000", "'d' 43E0000000000000", "'d' 7FEFFFFFFFFFFFFF"}) {
    INFO(past);
    RoutingSlip slip = at_position(past);
    CHECK(slip.is_finished());
    CHECK(!slip.current());
    CHECK(!slip.next());
    slip.advance();
    CHECK(slip.is_finished());
    // What goes out again is never negative, so that no reader starts the route anew.
    Buffer fields;
    slip.to_headers(fields);
    CHECK(slip_of(fields)->is_finished());
  }
}

TEST_CASE("a route is split at commas, trimmed, and without empties", "[routing_slip]") {
  CHECK(steps_of("a") == Names{"a"});
  CHECK(steps_of("a,b,c") == Names{"a", "b", "c"});
  CHECK(steps_of(" a , b\t,\nc ") == Names{"a", "b", "c"});
  CHECK(steps_of(",a,,b,") == Names{"a", "b"});
  CHECK(steps_of("a b") == Names{"a b"});
}

TEST_CASE("without a name left there is no slip", "[routing_slip]") {
  CHECK(!slip_of({}));
  for (const char* route : {"", ",", " , ,, ", "\t"}) CHECK(steps_of(route).empty());
  Buffer fields;
  put_field(fields, slip_route_header, int64_t{5});
  CHECK(!slip_of(fields));
  fields.clear();
  put_field(fields, slip_position_header, int64_t{1});
  put_field(fields, slip_id_header, run);
  CHECK(!slip_of(fields));
}

TEST_CASE("a run id that is missing, empty or no text becomes the fresh one", "[routing_slip]") {
  Buffer fields;
  put_field(fields, slip_route_header, std::string_view("a"));
  CHECK(slip_of(fields)->run_id() == fresh);
  Buffer empty = fields, number = fields;
  put_field(empty, slip_id_header, std::string_view());
  CHECK(slip_of(empty)->run_id() == fresh);
  put_field(number, slip_id_header, int64_t{7});
  CHECK(slip_of(number)->run_id() == fresh);
}

TEST_CASE("headers as byte arrays are read, foreign headers are passed over", "[routing_slip]") {
  const Buffer fields = from_hex("01 'z' 'D' 00 00000001 0D 'x-acemq-route' 'x' 00000003 'a,b' 01 'y' 'V'");
  CHECK(slip_of(fields)->steps() == Names{"a", "b"});
}

TEST_CASE("a table cut at any length never gives more than a slip or none", "[routing_slip]") {
  Buffer fields;
  RoutingSlip::start_of({"a", "b"}, std::string(run)).value().to_headers(fields);
  for (size_t size = 0; size < fields.size(); ++size) {
    const Buffer cut(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(size));
    const auto slip = slip_of(cut);
    if (slip) CHECK(slip->steps() == Names{"a", "b"});
  }
}

TEST_CASE("a slip that may not start says why", "[routing_slip]") {
  CHECK(!RoutingSlip::start_of({}, "r").ok());
  CHECK(RoutingSlip::start_of(Names(64, "a"), "r").ok());
  const auto many = RoutingSlip::start_of(Names(65, "a"), "r");
  REQUIRE(!many.ok());
  CHECK(many.error().find("64") != std::string::npos);
  // 64 names of 127 letters and 63 commas make 8191 bytes; one letter more still fits, two do not.
  Names names(64, std::string(127, 'a'));
  CHECK(RoutingSlip::start_of(names, "r").ok());
  names[0] += "a";
  CHECK(RoutingSlip::start_of(names, "r").ok());
  names[0] += "a";
  const auto large = RoutingSlip::start_of(names, "r");
  REQUIRE(!large.ok());
  CHECK(large.error().find("8192") != std::string::npos);
  CHECK(!RoutingSlip::start_of({"a", "b,c"}, "r").ok());
  CHECK(!RoutingSlip::start_of({""}, "r").ok());
}

TEST_CASE("step names", "[routing_slip]") {
  for (const char* name :
       {"a", "Z", "0", "charge.card", "step-2", "a..b", "a-", "check_stock", ".a", "-a", "a b", "a#", "*",
        "a/b", "\xC3\xA9", "\xE5\x87\xBA\xE8\x8D\xB7", "\xF0\x9F\x93\xA6", "a\xC2\xA0z"}) {
    INFO(name);
    CHECK(is_step_name(name));
  }
  for (const char* name :
       {"", ",", "a,b", " a", "a ", "\ta", "a\n", "a\nb", "a\x1F", "a\x7Fz", "a\xC2\x85z",
        "\xC2\xA0"
        "a",
        "a\xE3\x80\x80",
        // No UTF-8: cut, overlong, a surrogate, above U+10FFFF, a lone continuation, Latin-1.
        "a\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "caf\xE9"}) {
    INFO(name);
    CHECK(!is_step_name(name));
  }
  CHECK(!is_step_name(std::string_view("a\0b", 3)));
}
