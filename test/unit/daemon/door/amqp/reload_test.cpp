// A session whose configuration becomes another one while messages are under way: each follows one of them.
#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;

namespace {

// A configuration with the stores "first" and "second" in memory, and what else `yaml` says.
std::shared_ptr<const config::Config> configured(const std::string& yaml) {
  const bool is_whole = yaml.find("claim_check:") != std::string::npos;
  config::Loaded loaded = config::load_text(
      "broker: { url: amqp://localhost }\nstores: { first: { type: memory }, second: { type: memory } }\n" +
          yaml + (is_whole ? "" : "claim_check: { store: first }\n"),
      "test");
  REQUIRE(loaded.errors == std::vector<std::string>{});
  return std::make_shared<const config::Config>(std::move(loaded.config));
}

std::string route_to(const std::string& exchange) {
  return "routes: [{ name: to-" + exchange + ", match: { exchange: in }, to: { exchange: " + exchange +
         " } }]\nclaim_check: { store: first, threshold: 10B }\n";
}

struct Reloaded : Rig {
  using Rig::Rig;
  void use_config(const std::string& yaml) {
    use(snapshot_of(configured(yaml), {first, second}));
    turn();
  }
};

}  // namespace

TEST_CASE("what begins after a reload follows the new routes", "[session][reload]") {
  Reloaded rig(route_to("a"));
  rig.open_with_confirms();
  rig.client(publish(1, "in", "k", "small"));
  CHECK(rig.to_broker().find("1 publish a/k") != std::string::npos);
  rig.use_config(route_to("b"));
  rig.client(publish(1, "in", "k", "small"));
  CHECK(rig.to_broker().find("1 publish b/k") != std::string::npos);
  const auto names = rig.shared.meter->names();
  const auto routes = rig.shared.meter->totals().routes;
  CHECK(routes[names->route("to-a")].bytes == 5);
  CHECK(routes[names->route("to-b")].bytes == 5);
}

TEST_CASE("a publish whose body is on its way to a store keeps the configuration that it began with",
          "[session][reload]") {
  Reloaded rig(route_to("a"));
  rig.open_with_confirms();
  rig.client(publish(1, "in", "k", "0123456789"));
  std::weak_ptr<const Snapshot> before = rig.state->snapshot;
  rig.use_config(route_to("b"));
  CHECK_FALSE(before.expired());
  rig.first->store(0, "key-1");
  rig.turn();
  CHECK(rig.to_broker().find("1 publish a/k") != std::string::npos);
  CHECK(before.expired());  // nothing needs it any more
}

TEST_CASE("a publish of which only the header has come follows the new configuration as a whole",
          "[session][reload]") {
  Reloaded rig(route_to("a"));
  rig.open_with_confirms();
  const std::vector<Buffer> frames = split(publish(1, "in", "k", "0123456789"));
  rig.client(frames[0]);
  rig.client(frames[1]);
  rig.use_config(
      "claim_check: { enabled: false }\nroutes: [{ name: r, match: { exchange: in }, to: { exchange: b } "
      "}]\n");
  rig.client(frames[2]);
  CHECK(rig.first->puts.empty());
  CHECK(rig.to_broker().find("1 publish b/k") != std::string::npos);
}

TEST_CASE("a removed store lives until its upload is over, and takes nothing new", "[session][reload]") {
  Reloaded rig(route_to("a"));
  rig.open_with_confirms();
  rig.client(publish(1, "in", "k", "0123456789"));
  std::weak_ptr<ClaimStore> removed = rig.first;
  ScriptedStore* const store = rig.first.get();
  rig.use(rig.snapshot_of(configured("claim_check: { store: second, threshold: 10B }\n"), {rig.second}));
  rig.first.reset();
  rig.client(publish(1, "out", "k", "9876543210"));
  CHECK(rig.second->puts.size() == 1);
  REQUIRE_FALSE(removed.expired());
  store->store(0, "key-1");
  rig.turn();
  CHECK(rig.to_broker().find("1 publish a/k") != std::string::npos);
  CHECK(removed.expired());
}

TEST_CASE("a claim of a store that is not configured any more is held until it is again",
          "[session][reload]") {
  Reloaded rig("claim_check: { store: first }\n");
  rig.open_with_consumer("q");
  const std::string key = "00000000-0000-4000-8000-000000000001";
  rig.use(rig.snapshot_of(configured("claim_check: { store: first }\n"), {rig.first}));
  Buffer fields;
  proto::put_field(fields, "bellhop-claim-store", "second");
  proto::put_field(fields, "bellhop-claim-key", key);
  const Buffer body = claim_of(key);
  rig.broker(deliver(1, "c", 1, as_text(body), fields));
  rig.first->say(FetchFailure::Kind::missing, "not here");
  rig.turn();
  CHECK(rig.to_client().empty());
  CHECK(rig.shared.meter->totals().held == 1);
  CHECK(rig.shared.meter->totals().parked == std::array<uint64_t, 5>{});
  rig.use_config("claim_check: { store: first }\n");
  rig.wait_ms(10000);
  REQUIRE(rig.second->asked.size() == 1);
  rig.second->give("payload");
  rig.turn();
  CHECK(rig.to_client().find("payload") != std::string::npos);
  CHECK(rig.shared.meter->totals().held == 0);
}

TEST_CASE("a result goes on by the new configuration when its input came under the former one",
          "[session][reload]") {
  Reloaded rig("pipelines: { p: { steps: [ one, two ] } }\n");
  rig.open_with_confirms();
  rig.client(consume(1, "p.one", "c"));
  rig.broker(named(1, method::basic_consume_ok, "c"));
  rig.broker(deliver(1, "c", 5, "input"));
  rig.to_client();
  rig.to_broker();
  const std::weak_ptr<const Snapshot> before = rig.state->snapshot;
  rig.use_config("pipelines: { p: { steps: [ one, more, two ] } }\n");
  CHECK(before.expired());
  Buffer fields;
  proto::put_field(fields, "bellhop-ack", int64_t{5});
  rig.client(publish(1, "bellhop.next", "", "result", false, "id-1", fields));
  rig.open_private_channel();
  rig.broker(method_frame(Rig::private_id, method::exchange_declare_ok));
  CHECK(rig.to_broker().find("9 publish p/more") != std::string::npos);
}

TEST_CASE("without its pipeline a message that has no slip is refused", "[session][reload]") {
  Reloaded rig("pipelines: { p: { steps: [ one, two ] }, o: { steps: [ six, two ] } }\n");
  rig.open_with_confirms();
  rig.client(consume(1, "p.one", "c"));
  rig.broker(named(1, method::basic_consume_ok, "c"));
  rig.broker(deliver(1, "c", 5, "input"));
  rig.to_client();
  rig.use_config("pipelines: { o: { steps: [ six, two ] } }\n");
  Buffer fields;
  proto::put_field(fields, "bellhop-ack", int64_t{5});
  rig.client(publish(1, "bellhop.next", "", "result", false, "id-1", fields));
  CHECK(rig.to_client() == "1 nack 1");
}

TEST_CASE("a pipeline that is taken away and put back knows where its inputs stand", "[session][reload]") {
  const std::string both = "pipelines: { p: { steps: [ one, two ] }, o: { steps: [ six, two ] } }\n";
  Reloaded rig(both);
  rig.open_with_confirms();
  rig.client(consume(1, "p.one", "c"));
  rig.broker(named(1, method::basic_consume_ok, "c"));
  rig.broker(deliver(1, "c", 5, "input"));
  rig.to_client();
  rig.to_broker();
  rig.use_config("pipelines: { o: { steps: [ six, two ] } }\n");
  rig.use_config(both);
  Buffer fields;
  proto::put_field(fields, "bellhop-ack", int64_t{5});
  rig.client(publish(1, "bellhop.next", "", "result", false, "id-1", fields));
  rig.open_private_channel();
  rig.broker(method_frame(Rig::private_id, method::exchange_declare_ok));
  CHECK(rig.to_broker().find("9 publish p/two") != std::string::npos);
}
