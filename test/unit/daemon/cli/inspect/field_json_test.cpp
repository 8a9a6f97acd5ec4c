#include "daemon/cli/inspect/field_json.h"

#include "daemon/pipeline/deaths.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using bellhop::test::from_hex;

TEST_CASE("every type of header field can be shown", "[field_json]") {
  const Buffer fields = from_hex(
      "01't' 74 01  01'b' 62 ff  01'B' 42 ff  01's' 73 fffe  01'u' 75 fffe  01'I' 49 fffffffd  01'i' 69 "
      "fffffffd"
      "01'l' 6c fffffffffffffffc  01'L' 4c fffffffffffffffc  01'f' 66 3fc00000  01'd' 64 bff8000000000000"
      "01'D' 44 02 0000007b  01'S' 53 00000002'hi'  01'x' 78 00000002 00ff  01'T' 54 000000006b0e0e00  01'V' "
      "56"
      "01'A' 41 00000008 53 00000001'x' 74 00  01'F' 46 00000004 01'y' 74 01  02'S2' 53 00000001 ff");
  const auto json = json_of_table(fields);
  CHECK(json["t"] == true);
  CHECK(json["b"] == -1);
  CHECK(json["B"] == 255);
  CHECK(json["s"] == -2);
  CHECK(json["u"] == 65534);
  CHECK(json["I"] == -3);
  CHECK(json["i"] == 4294967293);
  CHECK(json["l"] == -4);
  CHECK(json["L"] == 18446744073709551612u);
  CHECK(json["f"] == 1.5);
  CHECK(json["d"] == -1.5);
  CHECK(json["D"] == "123e-2");
  CHECK(json["S"] == "hi");
  CHECK(json["x"] == "hex:00ff");
  CHECK(json["T"] == "2026-12-01T00:00:00Z");
  CHECK(json["V"].is_null());
  CHECK(json["A"].dump() == R"(["x",false])");
  CHECK(json["F"].dump() == R"({"y":true})");
  CHECK(json["S2"] == "hex:ff");
}

TEST_CASE("a table that ends too early shows what came before", "[field_json]") {
  CHECK(json_of_table(from_hex("01'a' 74 01 01'b' 49 00")).dump() == R"({"a":true})");
}

TEST_CASE("deaths are read from x-death, the newest first", "[deaths]") {
  const Buffer first = from_hex("05'queue' 53 00000002'q2' 06'reason' 53 00000007'expired'");
  const Buffer second = from_hex(
      "05'count' 6c 0000000000000003 05'queue' 53 00000002'q1' 06'reason' 53 00000008'rejected' 04'time' 54"
      "0000000000000064 08'exchange' 53 00000001'e' 0c'routing-keys' 41 00000006 53 00000001'k'");
  Buffer entries;
  for (const Buffer& each : {first, second}) {
    put_u8(entries, 'F');
    put_longstr(entries, as_text(each));
  }
  put(entries, from_hex("46 00000000 74 01"));  // without a queue; no table
  Buffer fields = from_hex("07'x-death' 41");
  put_longstr(fields, as_text(entries));
  const auto deaths = deaths_of(fields);
  REQUIRE(deaths.size() == 2);
  CHECK(deaths[0].queue == "q2");
  CHECK(deaths[0].reason == "expired");
  CHECK(deaths[0].count == 1);
  CHECK(deaths[1].queue == "q1");
  CHECK(deaths[1].count == 3);
  CHECK(deaths[1].first_at_s == 100);
  CHECK(deaths[1].exchange == "e");
  CHECK(deaths[1].routing_keys == std::vector<std::string>{"k"});
  CHECK(deaths_of(from_hex("07'x-death' 53 00000001'x'")).empty());
}
