#include "daemon/cli/inspect/replay_words.h"

#include "proto/table.h"
#include "test/support/catch.h"

using namespace bellhop;

TEST_CASE("--to is an exchange and a key, or a queue", "[replay_words]") {
  const auto both = parse_target("orders/order/new");
  REQUIRE(both);
  CHECK(both.value().exchange == "orders");
  CHECK(both.value().routing_key == "order/new");
  const auto queue = parse_target("/reports");
  REQUIRE(queue);
  CHECK(queue.value().exchange == "");
  CHECK(queue.value().routing_key == "reports");
  REQUIRE(parse_target("fanout/"));
  CHECK_FALSE(parse_target("reports"));
  CHECK_FALSE(parse_target("/"));
  CHECK_FALSE(parse_target(""));
  CHECK_FALSE(parse_target("/" + std::string(256, 'q')));
}

TEST_CASE("--match compares a header's text", "[replay_words]") {
  Buffer fields;
  proto::put_field(fields, "tenant", "a=b");
  proto::put_field(fields, "n", int64_t{7});
  const auto matches = [&](std::string_view text) { return parse_match(text).value().matches(fields); };
  CHECK(matches("tenant=a=b"));
  CHECK(matches("n=7"));
  CHECK_FALSE(matches("n=70"));
  CHECK_FALSE(matches("tenant="));
  CHECK_FALSE(matches("absent=x"));
  CHECK_FALSE(parse_match("tenant"));
  CHECK_FALSE(parse_match("=x"));
}

TEST_CASE("--rate is so many a second", "[replay_words]") {
  CHECK(parse_rate("1/s").value() == 1);
  CHECK(parse_rate("1000000/s").value() == 1000000);
  for (const char* wrong : {"", "/s", "0/s", "5", "5/m", "-1/s", "1.5/s", "1000001/s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_rate(wrong));
  }
}

TEST_CASE("a pace spreads what is done over the time", "[replay_words]") {
  const Pace slow(5);
  CHECK(slow.wait_ms(0, 0) == 0);
  CHECK(slow.wait_ms(1, 0) == 200);
  CHECK(slow.wait_ms(10, 1500) == 500);
  CHECK(slow.wait_ms(10, 9000) == 0);
  CHECK(slow.batch_max(256) == 1);
  CHECK(Pace(1000).batch_max(256) == 100);
  CHECK(Pace(100000).batch_max(256) == 256);
  const Pace free(0);
  CHECK(free.wait_ms(1000000, 0) == 0);
  CHECK(free.batch_max(256) == 256);
}
