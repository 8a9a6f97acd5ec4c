// What a good file becomes.
#include "config/load.h"

#include <unistd.h>

#include <cstdlib>

#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

Config loaded(const std::string& yaml) {
  const Loaded out = load_text(yaml, "test");
  REQUIRE(out.errors == std::vector<std::string>{});
  return out.config;
}

const std::string broker = "broker: { url: amqp://localhost }\n";

}  // namespace

TEST_CASE("the smallest file: every default is in place", "[config]") {
  const Config config = loaded(R"(
broker: { url: amqp://rabbit }
stores: { claims: { type: filesystem, path: /claims } }
)");
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  CHECK(config.service == host);

  REQUIRE(config.listen.size() == 1);
  const auto& listen = std::get<UnixListen>(config.listen[0]);
  CHECK(listen.path == "/run/bellhop/bellhop.sock");
  CHECK(listen.mode == 0660);
  CHECK(listen.group.empty());
  CHECK(listen.allow_uids.empty());
  CHECK(listen.allow_gids.empty());

  REQUIRE(config.broker.urls.size() == 1);
  CHECK(config.broker.urls[0].host == "rabbit");
  CHECK_FALSE(config.broker.has_credentials());
  CHECK(config.broker.vhosts.empty());
  CHECK(config.broker.vhost_map.empty());
  CHECK(config.broker.heartbeat_ms == 30000);
  CHECK(config.broker.connect_timeout_ms == 8000);

  REQUIRE(config.stores.size() == 1);
  CHECK(config.stores[0].name == "claims");
  const auto& store = std::get<FilesystemStore>(config.stores[0].kind);
  CHECK(store.path == "/claims");
  CHECK(store.mode == 0640);
  CHECK(store.group.empty());
  CHECK(store.fsync);
  CHECK(store.marker_required);

  CHECK(config.claim_check.enabled);
  CHECK(config.claim_check.store == "claims");
  CHECK(config.claim_check.threshold_bytes == 65536);
  CHECK_FALSE(config.claim_check.inline_always);
  CHECK_FALSE(config.claim_check.pass_already_framed);
  CHECK(config.stamp.delivery_mode == DeliveryMode::persistent);
  CHECK(config.stamp.fill_message_id);
  CHECK_FALSE(config.stamp.envelope);
  CHECK(config.pipelines.empty());
  CHECK(config.routes.empty());
  CHECK(config.slip_allowed_exchanges.empty());
  CHECK_FALSE(config.undeliverable_reject);
  CHECK(config.hold_max_ms == 600000);
  CHECK(config.limits.sessions == 256);
  CHECK(config.limits.tcp_sessions == 128);
  CHECK(config.limits.channels_per_session == 2047);
  CHECK(config.limits.message_bytes == 4294967296);
  CHECK(config.limits.inflight_bytes == 33554432);
  CHECK(config.limits.transfers_per_session == 16);
  CHECK(config.limits.handshake_timeout_ms == 10000);
  CHECK(config.limits.drain_timeout_ms == 20000);
  CHECK(config.log_level == LogLevel::info);
  CHECK_FALSE(config.log_json);
}

TEST_CASE("the sample beside the loader is good and has every key", "[config]") {
  const Loaded sample = load_file("config/bellhop.yaml");
  REQUIRE(sample.errors == std::vector<std::string>{});
  const Config& config = sample.config;
  CHECK(config.service == "orders-api");
  REQUIRE(config.listen.size() == 3);
  const auto& unix_listen = std::get<UnixListen>(config.listen[0]);
  CHECK(unix_listen.group == "app");
  CHECK(unix_listen.allow_uids == std::vector<uint32_t>{1000});
  const auto& tcp = std::get<TcpListen>(config.listen[1]);
  CHECK(tcp.host == "127.0.0.1");
  CHECK(tcp.port == 5673);
  CHECK(tcp.users.count("app") == 1);
  CHECK(std::get<TcpListen>(config.listen[2]).host == "::1");
  CHECK(std::get<TcpListen>(config.listen[2]).anonymous);
  CHECK(config.broker.urls.size() == 2);
  CHECK(config.broker.has_credentials());
  CHECK(config.broker.vhosts == std::vector<std::string>{"/", "prod"});
  CHECK(config.broker.vhost_map == std::map<std::string, std::string>{{"/", "prod"}});
  REQUIRE(config.stores.size() == 3);
  CHECK(std::get<S3Store>(config.stores[1].kind).bucket == "acme-claims");
  CHECK(config.claim_check.store == "claims");
  REQUIRE(config.pipelines.size() == 1);
  CHECK(config.pipelines[0].steps == std::vector<std::string>{"validate", "reserve", "dispatch"});
  CHECK(config.pipelines[0].declare);
  CHECK(config.pipelines[0].dead_letter);

  REQUIRE(config.routes.size() == 3);
  const Route& orders = config.routes[0];
  CHECK(orders.name == "orders");
  CHECK(orders.match_exchange == "orders");
  CHECK(orders.match_routing_key == "order.#");
  CHECK(orders.match_headers == std::map<std::string, std::string>{{"region", "eu"}});
  CHECK(orders.slip_pipeline == "fulfilment");
  CHECK(orders.claim_check.threshold_bytes == 262144);
  CHECK(orders.claim_check.store == "claims");
  CHECK(orders.headers == std::vector<std::pair<std::string, std::string>>{{"x-tenant", "acme"}});
  CHECK(orders.stamp.envelope);
  CHECK(orders.stamp.delivery_mode == DeliveryMode::persistent);
  const Route& refunds = config.routes[1];
  REQUIRE(refunds.slip_itinerary.size() == 2);
  CHECK(refunds.slip_itinerary[0].name == "check");
  CHECK(refunds.slip_itinerary[1].exchange == "orders-events");
  CHECK(refunds.slip_itinerary[1].routing_key == "refund.pay");
  const Route& audit = config.routes[2];
  CHECK(audit.to_exchange == "audit.v2");
  CHECK(audit.to_routing_key == "all");
  CHECK_FALSE(audit.claim_check.offloads());
  CHECK(config.slip_allowed_exchanges == std::vector<std::string>{"orders-events", "fulfilment"});
}

TEST_CASE("credentials come from the URL, from the two keys, or from the clients", "[config]") {
  SECTION("the URL") {
    const Config config = loaded("broker: { url: [\"amqp://a:x@one\", \"amqp://b:y@two\"] }");
    CHECK(config.broker.has_credentials());
    CHECK(config.broker.username_for(config.broker.urls[1]) == "b");
    CHECK(config.broker.password_for(config.broker.urls[1]) == "y");
  }
  SECTION("the keys, from environment and file, whatever characters a password has") {
    setenv("BELLHOP_TEST_PASSWORD", "*&!: {x} #\"'", 1);
    const Config config =
        loaded("broker:\n  url: amqp://one\n  username: app\n  password: ${BELLHOP_TEST_PASSWORD}\n");
    CHECK(config.broker.has_credentials());
    CHECK(config.broker.username_for(config.broker.urls[0]) == "app");
    CHECK(config.broker.password_for(config.broker.urls[0]) == "*&!: {x} #\"'");
  }
  SECTION("the clients, when both keys come out empty") {
    unsetenv("BELLHOP_TEST_NONE");
    CHECK_FALSE(loaded("broker:\n  url: amqp://one\n  username: ${BELLHOP_TEST_NONE:-}\n  password: "
                       "${BELLHOP_TEST_NONE:-}\n")
                    .broker.has_credentials());
  }
}

TEST_CASE("the store: the only one, the one named, or none", "[config]") {
  CHECK(loaded(broker).claim_check.store == "");
  CHECK_FALSE(loaded(broker).claim_check.offloads());
  CHECK(loaded(broker + "stores: { a: { type: memory } }").claim_check.store == "a");
  CHECK(
      loaded(broker + "stores: { a: { type: memory } }\nclaim_check: { enabled: false }").claim_check.store ==
      "a");
  CHECK(loaded(broker + "stores: { a: { type: memory }, b: { type: memory } }\nclaim_check: { store: b }")
            .claim_check.store == "b");
  CHECK(
      loaded(broker + "stores: { a: { type: memory }, b: { type: memory } }\nclaim_check: { enabled: false }")
          .claim_check.store == "");
}

TEST_CASE("a route says only what is different", "[config]") {
  const Config config = loaded(broker + R"(
stores: { a: { type: memory }, b: { type: memory } }
claim_check: { store: a, threshold: 1KiB, inline_framing: always, already_framed: pass }
stamp: { delivery_mode: transient, message_id: keep, envelope: acemq }
routes:
  - { name: as-it-is }
  - { name: other-store, claim_check: { store: b } }
  - { name: everything, claim_check: { threshold: 0, inline_framing: as_needed, already_framed: escape } }
  - { name: plain, stamp: { delivery_mode: keep, envelope: none } }
)");
  CHECK(config.routes[0].claim_check.store == "a");
  CHECK(config.routes[0].claim_check.threshold_bytes == 1024);
  CHECK(config.routes[0].claim_check.inline_always);
  CHECK(config.routes[0].stamp.envelope);
  CHECK(config.routes[1].claim_check.store == "b");
  CHECK(config.routes[1].claim_check.pass_already_framed);
  CHECK(config.routes[2].claim_check.store == "a");
  CHECK(config.routes[2].claim_check.threshold_bytes == 0);
  CHECK_FALSE(config.routes[2].claim_check.inline_always);
  CHECK_FALSE(config.routes[2].claim_check.pass_already_framed);
  CHECK(config.routes[3].stamp.delivery_mode == DeliveryMode::keep);
  CHECK_FALSE(config.routes[3].stamp.fill_message_id);
  CHECK_FALSE(config.routes[3].stamp.envelope);
}

TEST_CASE("a route may turn offloading on that the file turned off", "[config]") {
  const Config config = loaded(broker + R"(
stores: { a: { type: memory } }
claim_check: { enabled: false }
routes: [{ name: large, claim_check: { enabled: true } }]
)");
  CHECK_FALSE(config.claim_check.offloads());
  CHECK(config.routes[0].claim_check.offloads());
}

TEST_CASE("the exchanges that the file names are allowed to a carried itinerary", "[config]") {
  const std::string model = broker + R"(
pipelines: { p: { steps: [s] } }
routes:
  - { name: a, match: { exchange: m }, to: { exchange: t } }
  - { name: b, match: { exchange: "" }, slip: { itinerary: [{ exchange: i, routing_key: k }, { exchange: "", routing_key: q }, { exchange: t }] } }
)";
  CHECK(loaded(model).slip_allowed_exchanges == std::vector<std::string>{"p", "m", "t", "i"});
  CHECK(loaded(model + "slip: { allowed_exchanges: [x, \"\", x] }").slip_allowed_exchanges ==
        std::vector<std::string>{"x", ""});
  CHECK(loaded(model + "slip: { allowed_exchanges: [] }").slip_allowed_exchanges.empty());
}

TEST_CASE("TCP listeners: open to whom the broker lets in, to users, or to everybody", "[config]") {
  const Config config = loaded(broker + R"(
listen:
  - tcp: localhost:0
  - tcp: 0.0.0.0:5672
    users: { a: "1", b: "2" }
  - tcp: 127.0.0.1:5672
    anonymous: true
  - tcp: 127.0.0.1:0
  - tcp: 127.0.0.1:0
)");
  REQUIRE(config.listen.size() == 5);
  CHECK(std::get<TcpListen>(config.listen[0]).users.empty());
  CHECK(std::get<TcpListen>(config.listen[1]).users ==
        std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
  CHECK(std::get<TcpListen>(config.listen[2]).anonymous);
}

TEST_CASE("the remaining values", "[config]") {
  const Config config = loaded(R"(
service: s
broker: { url: "amqp://h/v", heartbeat: 0, connect_timeout: 500ms }
stores: { a: { type: filesystem, path: x, mode: "600", group: g, fsync: false, marker: optional, keys: any }, b: { type: memory } }
claim_check: { store: b }
consume: { undeliverable: reject, hold_max: 0, stores: [b] }
limits: { sessions: 1, tcp_sessions: 2, channels_per_session: 65534, message_bytes: 1MiB, inflight_bytes: 2MiB,
          transfers_per_session: 3, handshake_timeout: 501ms, drain_timeout: 0 }
log: { level: trace, format: json }
)");
  CHECK(config.service == "s");
  CHECK(config.broker.urls[0].vhost == "v");
  CHECK(config.broker.heartbeat_ms == 0);
  CHECK(config.broker.connect_timeout_ms == 500);
  const auto& store = std::get<FilesystemStore>(config.stores[0].kind);
  CHECK(store.mode == 0600);
  CHECK(store.group == "g");
  CHECK_FALSE(store.fsync);
  CHECK_FALSE(store.marker_required);
  CHECK(config.stores[0].keys == bellhop::proto::KeyRule::any);
  CHECK(config.stores[1].keys == bellhop::proto::KeyRule::issued);
  CHECK(config.undeliverable_reject);
  CHECK(config.consume_stores == std::vector<std::string>{"b"});
  CHECK(config.hold_max_ms == 0);
  CHECK(config.limits.sessions == 1);
  CHECK(config.limits.tcp_sessions == 2);
  CHECK(config.limits.channels_per_session == 65534);
  CHECK(config.limits.message_bytes == 1048576);
  CHECK(config.limits.inflight_bytes == 2097152);
  CHECK(config.limits.transfers_per_session == 3);
  CHECK(config.limits.handshake_timeout_ms == 501);
  CHECK(config.limits.drain_timeout_ms == 0);
  CHECK(config.log_level == LogLevel::trace);
  CHECK(config.log_json);
}
