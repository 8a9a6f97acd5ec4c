#include "config/slip_warnings.h"

#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

std::vector<std::string> warnings_of(const std::string& yaml) {
  Loaded loaded = load_text("broker: { url: amqp://localhost }\n" + yaml, "f");
  REQUIRE(loaded.errors == std::vector<std::string>{});
  return slip_warnings(loaded.config);
}

const std::string by_queues =
    "routes: [{ name: orders, slip: { itinerary: [{ exchange: \"\", routing_key: pick }, { exchange: \"\", "
    "routing_key: pack }, { exchange: \"\", routing_key: ship }] } }]\n";

}  // namespace

TEST_CASE("an itinerary by queues needs the default exchange among those that are allowed", "[config]") {
  CHECK(warnings_of(by_queues) ==
        std::vector<std::string>{"the itinerary of route 'orders' goes on to the default exchange, which "
                                 "slip.allowed_exchanges does not "
                                 "have: hops to it are refused; add \"\" to slip.allowed_exchanges"});
  CHECK(warnings_of(by_queues + "slip: { allowed_exchanges: [\"\"] }\n").empty());
}

TEST_CASE("exchanges that an itinerary names are allowed, unless the list leaves them out", "[config]") {
  const std::string two =
      "routes: [{ name: r, slip: { itinerary: [{ exchange: a, routing_key: k }, { exchange: b, routing_key: "
      "k }] } }]\n";
  CHECK(warnings_of(two).empty());
  CHECK(warnings_of(two + "slip: { allowed_exchanges: [b] }\n").empty());
  const auto told = warnings_of(two + "slip: { allowed_exchanges: [a] }\n");
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("exchange 'b'") != std::string::npos);
}
