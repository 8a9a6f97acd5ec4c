#include "proto/claim_frame.h"

#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;

TEST_CASE("a body is framed only if it starts AC 01 00 or AC 01 01", "[claim_frame]") {
  CHECK(framing_of(from_hex("AC 01 00 'payload'")) == Framing::inlined);
  CHECK(framing_of(from_hex("AC 01 01 'key'")) == Framing::claim);
  // Nothing after the prefix: an empty payload, and a claim with a bad key.
  CHECK(framing_of(from_hex("AC 01 00")) == Framing::inlined);
  CHECK(framing_of(from_hex("AC 01 01")) == Framing::claim);

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

TEST_CASE("what looks like a file's name is redeemable where any key is", "[claim_frame]") {
  CHECK(is_redeemable_key("0f8fad5b-d9cb-469f-a165-70867728950e", KeyRule::any));
  CHECK(is_redeemable_key("a", KeyRule::any));
  CHECK(is_redeemable_key("7", KeyRule::any));
  CHECK(is_redeemable_key("A.b_c-d", KeyRule::any));
  CHECK(is_redeemable_key("a..b", KeyRule::any));
  CHECK(is_redeemable_key("x.partially", KeyRule::any));
  CHECK(is_redeemable_key("partial", KeyRule::any));
  CHECK(is_redeemable_key(std::string(128, 'a'), KeyRule::any));
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
    CHECK(!is_redeemable_key(key, KeyRule::any));
  }
  CHECK(!is_redeemable_key(std::string(129, 'a'), KeyRule::any));
  CHECK(!is_redeemable_key(std::string(200, 'a'), KeyRule::any));
  CHECK(!is_redeemable_key(std::string(125, 'a') + ".partial", KeyRule::any));
}

TEST_CASE("a key that was issued is a UUID, dashed or not, in either case", "[claim_frame]") {
  for (const std::string key :
       {"0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5B-D9CB-469F-A165-70867728950E",
        "0f8fad5bd9cb469fa16570867728950e", "0F8FAD5BD9CB469FA16570867728950E",
        "00000000-0000-0000-0000-000000000000", "01890a5d-ac96-774b-bcce-b302099a8057"}) {
    INFO(key);
    CHECK(is_issued_key(key));
    CHECK(is_redeemable_key(key, KeyRule::issued));
    CHECK(is_redeemable_key(key, KeyRule::any));
    // Anything put before, behind or into it makes it another name; so does any part of it.
    for (const char c : {'0', 'a', '-', '.', '/', '\n', '\0', 'g'}) {
      CHECK(!is_issued_key(c + key));
      CHECK(!is_issued_key(key + c));
    }
    for (size_t size = 0; size < key.size(); ++size)
      CHECK((size == 32 && key.size() != 36) == is_issued_key(key.substr(0, size)));
    for (size_t at = 0; at < key.size(); ++at) {
      for (const char c : {'g', '/', '.', '_', '\0', '\xC3', key[at] == '-' ? 'a' : '-'}) {
        std::string other = key;
        other[at] = c;
        CHECK(!is_issued_key(other));
      }
    }
  }
}

TEST_CASE("other names that a directory may have are keys only where any key is", "[claim_frame]") {
  for (const std::string_view name : {"id_rsa", "README", "accounts.sqlite", "data.tar.gz", "order-17"}) {
    INFO(name);
    CHECK(is_redeemable_key(name, KeyRule::any));
    CHECK(!is_redeemable_key(name, KeyRule::issued));
  }
}

TEST_CASE("the reason shows a bad key without its sting", "[claim_frame]") {
  CHECK(bad_key_reason("../../etc/passwd") == "\"../../etc/passwd\" is not a key this store issued");
  CHECK(bad_key_reason("a\n\\") == "\"a\\x0a\\x5c\" is not a key this store issued");
  CHECK(bad_key_reason("") == "\"\" is not a key this store issued");
  const std::string long_key = bad_key_reason(std::string(1 << 20, '\xFF'));
  CHECK(long_key.size() < 400);
  CHECK(long_key.find("is not a key this store issued") != std::string::npos);
}
