// What sessions count, and how it adds up.
#include "daemon/ops/meter.h"

#include <thread>

#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

config::Config configured() {
  const config::Loaded out = config::load_text(R"(
broker: { url: amqp://localhost }
stores: { claims: { type: memory } }
pipelines: { fulfilment: { steps: [validate, dispatch] }, returns: { steps: [validate] } }
routes: [{ name: orders, match: { exchange: orders } }, { name: audit, match: { exchange: audit } }]
)",
                                               "f");
  REQUIRE(out.errors.empty());
  return out.config;
}

std::vector<std::string> all(const NumberedNames& names) {
  std::vector<std::string> out;
  for (size_t i = 0; i < names.size(); ++i) out.push_back(names[i]);
  return out;
}

uint64_t confirmed(const Totals& totals, size_t route) {
  return totals.routes[route].outcomes[static_cast<size_t>(PublishOutcome::confirmed)];
}

}  // namespace

TEST_CASE("names come from the configuration, with a first one for all else", "[ops][meter]") {
  MetricNames names;
  names.add(configured());
  CHECK(all(names.routes) == std::vector<std::string>{"(no route)", "orders", "audit"});
  CHECK(all(names.stores) == std::vector<std::string>{"claims"});
  CHECK(names.route("audit") == 2);
  CHECK(names.route("elsewhere") == 0);
  CHECK(names.pipeline("returns") == 2);
  CHECK(names.pipelines[names.pipeline("elsewhere")] == "(no pipeline)");
  CHECK(names.steps[names.step("fulfilment", "dispatch")].step == "dispatch");
  CHECK(names.step("returns", "validate") != names.step("fulfilment", "validate"));
  CHECK(names.steps[names.step("returns", "dispatch")].step == "(other)");
}

TEST_CASE("names keep their numbers when a configuration is read again", "[ops][meter]") {
  MetricNames names;
  names.add(configured());
  const config::Config other = config::load_text(R"(
broker: { url: amqp://localhost }
stores: { more: { type: memory }, claims: { type: memory } }
pipelines: { returns: { steps: [refund, validate] } }
routes: [{ name: new, match: { exchange: new } }, { name: audit, match: { exchange: audit } }]
)",
                                                 "f")
                                   .config;
  const size_t validate = names.step("returns", "validate");
  for (int i = 0; i < 3; ++i) names.add(other);
  CHECK(all(names.routes) == std::vector<std::string>{"(no route)", "orders", "audit", "new"});
  CHECK(all(names.stores) == std::vector<std::string>{"claims", "more"});
  CHECK(names.step("returns", "validate") == validate);
  CHECK(names.steps.back().step == "refund");
  CHECK(names.steps.size() == 5);
}

TEST_CASE("a session counts on under its names while new ones come", "[ops][meter]") {
  Meter meter(configured());
  SessionMeter session(meter, 1, Door::unix_socket, "");
  const PublishMark before = session.begin_publish(1, 10);
  config::Config other = configured();
  other.routes[0].name = "new";
  meter.add_names(other);
  CHECK(meter.totals().routes.size() == 4);
  session.use(meter.names());
  const PublishMark after = session.begin_publish(3, 5);
  session.settle(before, PublishOutcome::confirmed);
  session.settle(after, PublishOutcome::confirmed);
  CHECK(confirmed(meter.totals(), 1) == 1);
  CHECK(confirmed(meter.totals(), 3) == 1);
  CHECK(meter.totals().routes[3].bytes == 5);
}

TEST_CASE("what a session counted stays when it has ended", "[ops][meter]") {
  Meter meter(configured());
  {
    SessionMeter one(meter, 1, Door::unix_socket, "unix uid=1");
    SessionMeter two(meter, 2, Door::tcp, "tcp 127.0.0.1:1");
    one.settle(one.begin_publish(1, 100), PublishOutcome::confirmed);
    two.settle(two.begin_publish(1, 0), PublishOutcome::confirmed);
    two.settle(two.begin_publish(0, 0), PublishOutcome::nacked);
    one.delivered(DeliveryPath::restored);
    one.parked(ParkReason::missing);
    one.hopped("fulfilment", "dispatch", HopOutcome::finished);
    one.held.set(3);
    CHECK(confirmed(meter.totals(), 1) == 2);
    CHECK(meter.totals().sessions == std::array<uint64_t, 2>{1, 1});
    CHECK(meter.totals().held == 3);
    two.ends(SessionEnd::broker_lost);
  }
  const Totals totals = meter.totals();
  CHECK(confirmed(totals, 1) == 2);
  CHECK(confirmed(totals, 2) == 0);
  CHECK(totals.routes[1].bytes == 100);
  CHECK(totals.routes[0].outcomes[static_cast<size_t>(PublishOutcome::nacked)] == 1);
  CHECK(totals.deliveries[static_cast<size_t>(DeliveryPath::restored)] == 1);
  CHECK(totals.parked[static_cast<size_t>(ParkReason::missing)] == 1);
  CHECK(totals.slips_finished == std::vector<uint64_t>{0, 1, 0});
  CHECK(totals.sessions == std::array<uint64_t, 2>{0, 0});
  CHECK(totals.sessions_ended[1][static_cast<size_t>(SessionEnd::broker_lost)] == 1);
  CHECK(totals.sessions_ended[0][static_cast<size_t>(SessionEnd::closed)] == 1);
  CHECK(totals.held == 0);  // what waits now ends with its session
}

TEST_CASE("others read while a session counts", "[ops][meter]") {
  Meter meter(configured());
  SessionMeter session(meter, 1, Door::unix_socket, "");
  constexpr uint64_t publishes = 20000;
  std::thread counts([&] {
    for (uint64_t i = 0; i < publishes; ++i) {
      session.settle(session.begin_publish(i % 2, 0), PublishOutcome::confirmed);
      session.set_client("client");
    }
  });
  uint64_t last = 0;
  while (last < publishes) {
    const Totals totals = meter.totals();
    const uint64_t now = confirmed(totals, 0) + confirmed(totals, 1);
    REQUIRE(now >= last);
    last = now;
    REQUIRE(meter.sessions().size() == 1);
  }
  counts.join();
  CHECK(meter.sessions()[0].client == "client");
}

TEST_CASE("durations fall into the bucket whose bound they do not pass", "[ops][meter]") {
  DurationCounters counters;
  for (const uint64_t ms : {0, 1, 2, 3, 5, 63, 64, 1000, 1001, 30000, 30001, 10000000}) counters.add(ms);
  Durations sum;
  counters.add_to(sum);
  //                                 1  2  5 10 20 50 100 200 500 1 s 2 s 5 s 10 s 30 s more
  CHECK(sum.buckets == std::array<uint64_t, 15>{2, 1, 2, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0, 1, 2});
  CHECK(sum.count() == 12);
  CHECK(sum.sum_ms == 10062140);
}

TEST_CASE("a store fails when its last three operations did", "[ops][meter]") {
  StoreMeter store;
  CHECK_FALSE(store.totals().is_failing);
  store.upload_failed(1);
  store.fetched(StoreResult::unavailable, 1);
  CHECK_FALSE(store.totals().is_failing);
  store.upload_failed(1);
  CHECK(store.totals().is_failing);
  store.fetched(StoreResult::missing, 1);  // it answers
  CHECK_FALSE(store.totals().is_failing);
  CHECK(store.totals().failed_uploads == 2);
}

TEST_CASE("the broker is up while a session is there, else as last seen", "[ops][meter]") {
  Meter meter(configured());
  using State = Meter::BrokerState;
  CHECK(meter.broker() == State::unknown);  // nobody has looked
  meter.connected_to_broker(true);
  CHECK(meter.broker() == State::up);
  meter.saw_broker(false);
  CHECK(meter.broker() == State::down);
  SessionMeter session(meter, 1, Door::unix_socket, "");
  session.at_broker = true;
  CHECK(meter.broker() == State::up);
  CHECK(meter.has_session_at_broker());
}

TEST_CASE("a refused login is no broker that is up, until it lets somebody in", "[ops][meter]") {
  Meter meter(configured());
  using State = Meter::BrokerState;
  meter.answered_login(false);
  CHECK(meter.broker() == State::refuses);
  meter.connected_to_broker(true);  // that is before the login
  meter.saw_broker(true);
  CHECK(meter.broker() == State::refuses);
  meter.answered_login(true);
  CHECK(meter.broker() == State::up);
  meter.answered_login(false);
  meter.saw_broker(false);
  CHECK(meter.broker() == State::down);
  meter.saw_broker(true);  // it is back, and nobody was let in
  CHECK(meter.broker() == State::refuses);
  meter.forget_broker();
  meter.saw_broker(true);
  CHECK(meter.broker() == State::up);
}

TEST_CASE("who asks first waits for the first look at the broker", "[ops][meter]") {
  Meter meter(configured());
  std::thread looks([&] { meter.saw_broker(true); });
  CHECK(meter.broker() == Meter::BrokerState::up);
  looks.join();
}
