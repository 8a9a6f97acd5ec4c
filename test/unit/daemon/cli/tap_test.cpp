#include "daemon/cli/tap.h"

#include "test/support/catch.h"

using namespace bellhop;

TEST_CASE("a tapped message is a line of fields in their order", "[tap]") {
  REQUIRE(
      tap_text(R"({"time":"2026-01-31T10:00:00.123Z","direction":"publish","session":7,"client":"a b",)"
               R"("exchange":"","routing_key":"k\nk","size":5})") ==
      "2026-01-31T10:00:00.123Z publish session=7 client=\"a b\" exchange=\"\" routing_key=\"k\\nk\" size=5");
}

TEST_CASE("what was missed is said in words", "[tap]") {
  REQUIRE(tap_text(R"({"missed":12})") == "\xE2\x80\xA6 12 lines missed");
}

TEST_CASE("what is no message is shown as it came", "[tap]") {
  REQUIRE(tap_text("half a li") == "half a li");
  REQUIRE(tap_text("[1]") == "[1]");
}
