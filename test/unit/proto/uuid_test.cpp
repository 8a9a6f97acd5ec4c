#include "proto/uuid.h"

#include <set>
#include <string>

#include "proto/claim_frame.h"
#include "test/support/catch.h"

using namespace bellhop::proto;

TEST_CASE("a UUID is lower-case, dashed, of version 4 and variant 1", "[uuid]") {
  UuidGenerator generator({1, 2, 3, 4});
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
    REQUIRE(is_redeemable_key(uuid));
    REQUIRE(seen.emplace(uuid).second);
  }
}

TEST_CASE("two seeds give two sequences, one seed one", "[uuid]") {
  UuidGenerator one({1, 2, 3, 4}), same({1, 2, 3, 4}), other({1, 2, 3, 5});
  CHECK(one.next() == same.next());
  CHECK(one.next() != other.next());
}

TEST_CASE("a seed of zeros still gives different UUIDs", "[uuid]") {
  UuidGenerator generator({0, 0, 0, 0});
  CHECK(generator.next() != generator.next());
}
