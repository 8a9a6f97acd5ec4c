#include "config/routing_table.h"

#include <cstdlib>
#include <new>

#include "config/load.h"
#include "proto/table.h"
#include "test/support/catch.h"

// Counts allocations, but leaves them to the sanitizers where there are some.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 1
namespace {
thread_local size_t allocations = 0;
}
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
#endif

using namespace bellhop;
using namespace bellhop::config;

namespace {

std::shared_ptr<const Config> loaded(const std::string& yaml) {
  Loaded out = load_text("broker: { url: amqp://localhost }\n" + yaml, "test");
  REQUIRE(out.errors == std::vector<std::string>{});
  return std::make_shared<const Config>(std::move(out.config));
}

constexpr const char* model = R"(
stores: { claims: { type: memory } }
pipelines:
  fulfilment: { steps: [validate, reserve, dispatch] }
  returns: { steps: [validate, refund] }
routes:
  - name: europe
    match: { exchange: orders, routing_key: "order.#", headers: { region: eu, urgent: true, priority: 5 } }
    slip: { pipeline: fulfilment }
  - name: orders
    match: { exchange: orders, routing_key: "order.*" }
    to: { exchange: orders.v2 }
    headers: { x-tenant: acme }
    claim_check: { threshold: 1KiB }
  - name: default
    match: { exchange: "" }
    slip: { itinerary: [{ exchange: e, routing_key: k, name: n }] }
  - name: audit
    match: { routing_key: "audit.#" }
    stamp: { envelope: acemq }
)";

Buffer table(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Buffer out;
  for (const auto& [name, text] : fields) proto::put_field(out, name, text);
  return out;
}

}  // namespace

TEST_CASE("the first route that matches wins, else the default plan", "[config]") {
  const RoutingTable routing(loaded(model));
  CHECK(routing.find("orders", "order.new", {}).name == "orders");
  CHECK(routing.find("orders", "order.new.x", {}).name == "");
  CHECK(routing.find("", "order.new", {}).name == "default");
  CHECK(routing.find("", "audit.x", {}).name == "default");
  CHECK(routing.find("x", "audit.x", {}).name == "audit");
  CHECK(routing.find("x", "audit", {}).name == "audit");
  CHECK(routing.find("x", "y", {}).name == "");
}

TEST_CASE("a route on headers wants all of them, of any type", "[config]") {
  const RoutingTable routing(loaded(model));
  Buffer all = table({{"x", "y"}, {"region", "eu"}});
  const Buffer some = all;
  put_shortstr(all, "urgent");
  put_u8(all, 't');
  put_u8(all, 1);
  proto::put_field(all, "priority", int64_t{5});
  CHECK(routing.find("orders", "order.new", all).name == "europe");
  CHECK(routing.find("orders", "order.new.x", all).name == "europe");
  CHECK(routing.find("orders", "order.new", some).name == "orders");
  CHECK(routing.find("orders", "order.new", table({{"region", "us"}, {"urgent", "true"}, {"priority", "5"}}))
            .name == "orders");
  CHECK(routing.find("orders", "order.new", table({{"region", "eu"}, {"urgent", "true"}, {"priority", "5"}}))
            .name == "europe");

  SECTION("of a header that is there twice the last one counts") {
    proto::put_field(all, "region", "us");
    CHECK(routing.find("orders", "order.new", all).name == "orders");
  }
  SECTION("a table that is cut off does not match, and does no harm") {
    for (size_t bytes = 0; bytes < all.size(); ++bytes)
      CHECK(routing.find("orders", "order.new", Bytes(all).first(bytes)).name == "orders");
  }
}

TEST_CASE("a plan has everything worked out beforehand", "[config]") {
  const RoutingTable routing(loaded(model));
  const Plan& orders = routing.find("orders", "order.new", {});
  CHECK(orders.to_exchange == "orders.v2");
  CHECK_FALSE(orders.to_routing_key.has_value());
  CHECK(orders.claim_check.threshold_bytes == 1024);
  CHECK(orders.claim_check.store == "claims");
  CHECK(orders.pipeline == nullptr);
  CHECK_FALSE(orders.matches_on_headers);
  REQUIRE(orders.headers.size() == 1);
  CHECK(orders.headers[0].name == "x-tenant");
  CHECK(orders.headers[0].encoded == table({{"x-tenant", "acme"}}));

  const Plan* const europe = routing.by_name("europe");
  REQUIRE(europe != nullptr);
  CHECK(europe->matches_on_headers);
  REQUIRE(europe->pipeline != nullptr);
  CHECK(europe->pipeline->name == "fulfilment");

  const Plan& itinerary = routing.find("", "q", {});
  REQUIRE(itinerary.itinerary.has_value());
  CHECK(itinerary.itinerary->to_json() == R"({"steps":[{"exchange":"e","routingKey":"k","name":"n"}]})");

  CHECK(routing.find("x", "y", {}).claim_check.store == "claims");
  CHECK(routing.find("x", "audit", {}).stamp.envelope);
  CHECK_FALSE(routing.find("x", "y", {}).stamp.envelope);
}

TEST_CASE("routes, pipelines and steps are found by name", "[config]") {
  const RoutingTable routing(loaded(model));
  CHECK(routing.by_name("default") == &routing.find("", "q", {}));
  CHECK(routing.by_name("nobody") == nullptr);
  CHECK(routing.by_name("") == nullptr);
  REQUIRE(routing.pipeline("returns") != nullptr);
  CHECK(routing.pipeline("returns")->steps == std::vector<std::string>{"validate", "refund"});
  CHECK(routing.pipeline("") == nullptr);
  CHECK(routing.only_pipeline_with("refund") == routing.pipeline("returns"));
  CHECK(routing.only_pipeline_with("validate") == nullptr);
  CHECK(routing.only_pipeline_with("nothing") == nullptr);
}

TEST_CASE("a route is published to by its name when it says itself where that goes", "[config]") {
  const RoutingTable routing(loaded(R"(
pipelines: { line: { steps: [one] } }
routes:
  - { name: slip, match: { routing_key: "#" }, slip: { pipeline: line } }
  - { name: to, match: { routing_key: "#" }, to: { exchange: "", routing_key: q } }
  - { name: match, match: { exchange: e, routing_key: "a.b#.c" } }
  - { name: both, match: { exchange: e, routing_key: "a.b" }, to: { exchange: f } }
  - { name: star, match: { exchange: e, routing_key: "a.*" } }
  - { name: hash, match: { routing_key: "#" }, to: { exchange: e } }
  - { name: exchange, match: { exchange: e } }
  - { name: key, match: { routing_key: k } }
  - { name: all }
)"));
  REQUIRE(routing.by_name("slip") != nullptr);
  for (const char* vague : {"star", "hash", "exchange", "key", "all"})
    CHECK(routing.by_name(vague) == nullptr);
  const auto target = [&](const char* name) {
    const Plan* const plan = routing.by_name(name);
    REQUIRE(plan != nullptr);
    return *plan->named_exchange + "|" + *plan->named_routing_key;
  };
  CHECK(target("to") == "|q");
  CHECK(target("match") == "e|a.b#.c");
  CHECK(target("both") == "f|a.b");
}

TEST_CASE("a carried itinerary may go where the configuration goes, the default exchange not", "[config]") {
  const RoutingTable routing(loaded(model));
  for (const char* exchange : {"fulfilment", "returns", "orders", "orders.v2", "e"})
    CHECK(routing.may_send_to(exchange));
  for (const char* exchange : {"", "amq.topic", "claims"}) CHECK_FALSE(routing.may_send_to(exchange));
  const RoutingTable listed(loaded("slip: { allowed_exchanges: [\"\", x] }"));
  CHECK(listed.may_send_to(""));
  CHECK(listed.may_send_to("x"));
  CHECK_FALSE(listed.may_send_to("orders"));
}

#ifdef COUNTS_ALLOCATIONS
TEST_CASE("finding a route allocates nothing", "[config]") {
  std::string yaml = "routes:\n";
  for (int i = 0; i < 50; ++i)
    yaml += "  - { name: r" + std::to_string(i) + ", match: { exchange: e, routing_key: \"#." +
            std::to_string(i) + ".*\" } }\n";
  const RoutingTable routing(loaded(yaml));
  const std::string key = "a.quite.long.routing.key.that.is.no.small.string.49.x";
  const size_t before = allocations;
  const Plan& plan = routing.find("e", key, {});
  const size_t after = allocations;
  CHECK(after == before);
  CHECK(plan.name == "r49");
}
#endif
