#include "daemon/claims/s3/reread_check.h"

#include "test/support/catch.h"

using namespace bellhop;

namespace {

std::string xxh128_of(std::string_view text) {
  PayloadHash hash;
  hash.update(as_bytes(text));
  return hash.hex();
}

}  // namespace

TEST_CASE("a payload that is read again is completed only if it is the one that was verified") {
  RereadCheck check(6, xxh128_of("abcdef"));
  CHECK(check.take(0, as_bytes("abc")).ok());
  const bool is_damaged = GENERATE(false, true);
  CHECK(check.take(3, as_bytes(is_damaged ? "dex" : "def")).ok() == !is_damaged);
}

TEST_CASE("damage at the beginning of what is read again shows at its end") {
  RereadCheck check(6, xxh128_of("abcdef"));
  CHECK(check.take(0, as_bytes("xbc")).ok());
  const auto last = check.take(3, as_bytes("def"));
  REQUIRE_FALSE(last.ok());
  CHECK(last.error().find(xxh128_of("abcdef")) != std::string::npos);
  CHECK(last.error().find(xxh128_of("xbcdef")) != std::string::npos);
}

TEST_CASE("pieces that are left out or come twice cannot be verified") {
  RereadCheck check(6, xxh128_of("abcdef"));
  CHECK(check.take(0, as_bytes("abc")).ok());
  SECTION("left out") {
    CHECK_FALSE(check.take(4, as_bytes("ef")).ok());
  }
  SECTION("twice") {
    CHECK(check.take(0, as_bytes("abc")).ok());
    CHECK_FALSE(check.take(3, as_bytes("def")).ok());
  }
}
