#include "proto/claim_frame.h"

#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;

TEST_CASE("a body is framed only if it starts AC 01 00 or AC 01 01", "[claim_frame]") {
  CHECK(framing_of(from_hex("AC 01 00 'payload'")) == Framing::inlined);
  CHECK(framing_of(from_hex("AC 01 01 'key'")) == Framing::check);
  // Nothing after the prefix: an empty payload, and a check with a bad key.
  CHECK(framing_of(from_hex("AC 01 00")) == Framing::inlined);
  CHECK(framing_of(from_hex("AC 01 01")) == Framing::check);

  for (const char* raw : {"", "AC", "AC 01", "AC 01 02", "AC 01 09 00", "AC 02 00 'x'", "AD 01 00 'x'",
                          "AC 01 FF", "00 AC 01 00", "'{}'"}) {
    INFO(raw);
    CHECK(framing_of(from_hex(raw)) == Framing::raw);
  }
}

TEST_CASE("the prefixes are those of the manual", "[claim_frame]") {
  CHECK(test::to_hex(claim_inline_prefix) == "AC 01 00");
  CHECK(test::to_hex(claim_check_prefix) == "AC 01 01");
}

TEST_CASE("keys that a store may have issued are redeemable", "[claim_frame]") {
  CHECK(is_redeemable_key("0f8fad5b-d9cb-469f-a165-70867728950e"));
  CHECK(is_redeemable_key("a"));
  CHECK(is_redeemable_key("7"));
  CHECK(is_redeemable_key("A.b_c-d"));
  CHECK(is_redeemable_key("a..b"));
  CHECK(is_redeemable_key("x.partially"));
  CHECK(is_redeemable_key("partial"));
  CHECK(is_redeemable_key(std::string(128, 'a')));
}

TEST_CASE("hostile keys are not", "[claim_frame]") {
  using namespace std::string_view_literals;
  for (const std::string_view key : {"../../etc/passwd"sv,
                                     "/etc/passwd"sv,
                                     ""sv,
                                     ".hidden"sv,
                                     "nested/key"sv,
                                     "key\n"sv,
                                     "key\0"sv,
                                     "\0key"sv,
                                     "-rf"sv,
                                     "_a"sv,
                                     "a b"sv,
                                     "a\\b"sv,
                                     "a%2f"sv,
                                     "a:b"sv,
                                     "k\xC3\xA9y"sv,
                                     "."sv,
                                     ".."sv,
                                     ".partial"sv,
                                     "0f8fad5b-d9cb-469f-a165-70867728950e.partial"sv,
                                     "a.partial"sv}) {
    INFO(key);
    CHECK(!is_redeemable_key(key));
  }
  CHECK(!is_redeemable_key(std::string(129, 'a')));
  CHECK(!is_redeemable_key(std::string(200, 'a')));
  CHECK(!is_redeemable_key(std::string(125, 'a') + ".partial"));
}

TEST_CASE("the reason shows a bad key without its sting", "[claim_frame]") {
  CHECK(bad_key_reason("../../etc/passwd") == "\"../../etc/passwd\" is not a key this store issued");
  CHECK(bad_key_reason("a\n\\") == "\"a\\x0a\\x5c\" is not a key this store issued");
  CHECK(bad_key_reason("") == "\"\" is not a key this store issued");
  const std::string long_key = bad_key_reason(std::string(1 << 20, '\xFF'));
  CHECK(long_key.size() < 400);
  CHECK(long_key.find("is not a key this store issued") != std::string::npos);
}
