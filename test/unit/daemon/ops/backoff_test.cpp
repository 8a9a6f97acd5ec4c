#include "daemon/ops/backoff.h"

#include <limits>

#include "test/support/catch.h"

using bellhop::Backoff;

TEST_CASE("the wait doubles up to its bound, and at least half of it is certain", "[backoff]") {
  const Backoff backoff{100, 10000};
  std::minstd_rand random(7);
  uint32_t whole = 100;
  for (uint32_t failures = 1; failures < 40; ++failures) {
    for (int again = 0; again < 20; ++again) {
      const uint32_t wait = backoff.wait_ms(failures, random);
      CHECK(wait >= whole / 2);
      CHECK(wait <= whole);
    }
    whole = std::min<uint32_t>(whole * 2, 10000);
  }
}

TEST_CASE("two that failed together do not come back together", "[backoff]") {
  const Backoff backoff{100, 10000};
  std::minstd_rand one(1), other(2);
  int apart = 0;
  for (uint32_t failures = 1; failures <= 20; ++failures)
    apart += backoff.wait_ms(failures, one) != backoff.wait_ms(failures, other) ? 1 : 0;
  REQUIRE(apart > 15);
}

TEST_CASE("the extremes are in bounds: no failure, as many as can be counted, the longest bound",
          "[backoff]") {
  std::minstd_rand random(7);
  const uint32_t most = std::numeric_limits<uint32_t>::max();
  const Backoff backoff{500, most};
  REQUIRE(backoff.wait_ms(0, random) <= 500);
  REQUIRE(backoff.wait_ms(most, random) >= (500U << 16) / 2);
  REQUIRE(Backoff{most, most}.wait_ms(most, random) >= most / 2);
  REQUIRE(Backoff{1, 1}.wait_ms(3, random) == 1);
}
