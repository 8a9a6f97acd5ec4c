#include "proto/uuid.h"

#include <algorithm>
#include <set>
#include <string>

#include "proto/claim_frame.h"
#include "test/support/catch.h"
#include "test/support/hex.h"
#include "test/support/random_words.h"

using namespace bellhop::proto;
using bellhop::test::from_hex;
using bellhop::test::random_words;

TEST_CASE("a UUID is lower-case, dashed, of version 4 and variant 1", "[uuid]") {
  UuidGenerator generator(random_words(1));
  std::set<std::string> seen;
  for (int round = 0; round < 10000; ++round) {
    const auto text = generator.next();
    const std::string_view uuid = view(text);
    REQUIRE(uuid.find_first_not_of("0123456789abcdef-") == std::string_view::npos);
    for (size_t at = 0; at < uuid.size(); ++at) {
      REQUIRE((uuid[at] == '-') == (at == 8 || at == 13 || at == 18 || at == 23));
    }
    REQUIRE(uuid[14] == '4');
    REQUIRE(std::string_view("89ab").find(uuid[19]) != std::string_view::npos);
    REQUIRE(is_issued_key(uuid));
    REQUIRE(seen.emplace(uuid).second);
  }
}

TEST_CASE("a UUID is sixteen bytes of its source, but for version and variant", "[uuid]") {
  UuidGenerator generator([](std::span<uint8_t> into) {
    const bellhop::Buffer bytes = from_hex(
        "0123456789ABCDEFFEDCBA9876543210 00000000000000000000000000000000"
        "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF 09A90A9A90909090909A9A9A9A9A9A9A");
    REQUIRE(into.size() % bytes.size() == 0);
    for (size_t at = 0; at < into.size(); at += bytes.size())
      std::copy(bytes.begin(), bytes.end(), into.begin() + static_cast<ptrdiff_t>(at));
  });
  CHECK(view(generator.next()) == "01234567-89ab-4def-bedc-ba9876543210");
  CHECK(view(generator.next()) == "00000000-0000-4000-8000-000000000000");
  CHECK(view(generator.next()) == "ffffffff-ffff-4fff-bfff-ffffffffffff");
  CHECK(view(generator.next()) == "09a90a9a-9090-4090-909a-9a9a9a9a9a9a");
}

// What shows more bytes than went into it was made by a rule, and a rule can be found out.
TEST_CASE("no byte of the source serves twice, and they are asked for in blocks", "[uuid]") {
  size_t calls = 0, asked_bytes = 0;
  uint8_t next_byte = 0;
  UuidGenerator generator([&](std::span<uint8_t> into) {
    ++calls;
    asked_bytes += into.size();
    for (uint8_t& each : into) each = next_byte++;
  });
  REQUIRE(calls == 0);
  constexpr size_t count = 1000;
  for (size_t number = 0; number < count; ++number) {
    const auto text = generator.next();
    const size_t begins = std::stoul(std::string(view(text).substr(0, 2)), nullptr, 16);
    const size_t ends = std::stoul(std::string(view(text).substr(34)), nullptr, 16);
    REQUIRE(begins == number * 16 % 256);
    REQUIRE(ends == (number * 16 + 15) % 256);
  }
  CHECK(asked_bytes >= count * 16);
  CHECK(calls <= count / 64);
}
