#include "config/hold_warnings.h"

#include "test/support/catch.h"

using namespace bellhop::config;

TEST_CASE("a delivery that is held for longer than the broker waits is worth a warning", "[config]") {
  Config config;
  CHECK(hold_warnings(config).empty());
  config.hold_max_ms = 25 * 60000;
  CHECK(hold_warnings(config).empty());
  config.hold_max_ms = 26 * 60000;
  REQUIRE(hold_warnings(config).size() == 1);
  CHECK(hold_warnings(config)[0].starts_with("consume.hold_max is 26m, and RabbitMQ closes a channel"));
  CHECK(hold_warnings(config)[0].find("at most 25m") != std::string::npos);
}
