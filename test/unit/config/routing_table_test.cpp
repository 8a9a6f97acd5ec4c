#include "config/routing_table.h"

#include <time.h>

#include <cstdlib>
#include <new>
#include <random>

#include "config/load.h"
#include "proto/table.h"
#include "test/support/catch.h"

// Counts allocations, but leaves them to the sanitizers where there are some. None is inlined: gcc would warn
// of a free() for what it takes for its own operator new.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 1
namespace {
thread_local size_t allocations = 0;
}
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
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
  REQUIRE(orders.headers.size() == 1);
  CHECK(orders.headers[0].name == "x-tenant");
  CHECK(orders.headers[0].encoded == table({{"x-tenant", "acme"}}));

  const Plan* const europe = routing.by_name("europe");
  REQUIRE(europe != nullptr);
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

namespace {

Route route_at(const std::string& name, std::optional<std::string> exchange, std::optional<std::string> key) {
  Route route;
  route.name = name;
  route.match_exchange = std::move(exchange);
  route.match_routing_key = std::move(key);
  return route;
}

std::shared_ptr<const Config> with_routes(std::vector<Route> routes) {
  auto config = std::make_shared<Config>();
  config->routes = std::move(routes);
  return config;
}

// One exchange, a key for each route, and a last route for all the rest.
std::vector<Route> exact_routes(size_t count) {
  std::vector<Route> routes;
  for (size_t i = 0; i + 1 < count; ++i)
    routes.push_back(route_at("r" + std::to_string(i), "orders", "order." + std::to_string(i)));
  routes.push_back(route_at("rest", "orders", "order.#"));
  return routes;
}

// Of this thread, for 10,000 publishes to keys all over the table.
int64_t lookup_cpu_ns(const RoutingTable& routing, size_t routes) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < 10'000; ++i) keys.push_back("order." + std::to_string(i * 7919 % routes));
  timespec begin{}, end{};
  size_t found = 0;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (const std::string& key : keys) found += routing.find("orders", key, {}).name.empty() ? 0 : 1;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  REQUIRE(found == keys.size());
  return (end.tv_sec - begin.tv_sec) * 1'000'000'000 + (end.tv_nsec - begin.tv_nsec);
}

}  // namespace

TEST_CASE("of many routes, too, the first one that matches wins", "[config]") {
  const auto* const exchange = GENERATE("orders", "other");
  std::minstd_rand random(GENERATE(1, 2, 3));
  const auto one_of = [&](const std::vector<std::optional<std::string>>& choices) {
    return choices[random() % choices.size()];
  };
  std::vector<Route> routes;
  for (size_t i = 0; i < 60; ++i) {
    Route route = route_at("r" + std::to_string(i), one_of({"orders", "orders", "third", {}}),
                           one_of({"a", "a.b", "b.c", "", "*", "a.*", "#.c", "x.#", {}}));
    if (random() % 2 == 0) route.match_headers["region"] = random() % 2 == 0 ? "eu" : "us";
    // Else the first one that takes everything would be the only one.
    if (!route.match_exchange && !route.match_routing_key) route.match_headers["region"] = "none";
    routes.push_back(route);
  }
  const RoutingTable routing(with_routes(routes));
  const Buffer headers = table({{"region", random() % 2 == 0 ? "eu" : "us"}});
  for (const std::string key : {"a", "a.b", "b.c", "", "x", "x.y", "a.c"}) {
    std::string first;
    for (const Route& route : routes) {
      first = RoutingTable(with_routes({route})).find(exchange, key, headers).name;
      if (!first.empty()) break;
    }
    CAPTURE(exchange, key);
    CHECK(routing.find(exchange, key, headers).name == first);
  }
}

TEST_CASE("with 10,000 routes a publish is looked up as fast as with a hundred", "[config]") {
  const RoutingTable few(with_routes(exact_routes(100))), many(with_routes(exact_routes(10'000)));
  CHECK(many.find("orders", "order.9998", {}).name == "r9998");
  CHECK(many.find("orders", "order.9999", {}).name == "rest");
  CHECK(many.find("orders", "order", {}).name == "rest");
  CHECK(many.find("orders", "x", {}).name == "");
  CHECK(many.find("other", "order.1", {}).name == "");
  CHECK(many.by_name("r9998")->named_routing_key == "order.9998");
  // One by one it would be a hundred times as much. What is left is the processor's caches.
  const int64_t of_few = lookup_cpu_ns(few, 100), of_many = lookup_cpu_ns(many, 10'000);
  CAPTURE(of_few, of_many);
  CHECK(of_many < 20 * of_few);
#ifdef COUNTS_ALLOCATIONS
  const size_t before = allocations;
  static_cast<void>(many.find("orders", "order.5000", {}));
  CHECK(allocations == before);
#endif
}
