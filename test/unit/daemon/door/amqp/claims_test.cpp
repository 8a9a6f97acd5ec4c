// Claims on their way down: fetched, held, handed over.
#include "test/unit/daemon/door/amqp/claims.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;
using FailureKind = FetchFailure::Kind;

namespace {

Buffer named_store(const std::string& key, const std::string& store) {
  Buffer fields;
  put_claim_headers(fields, Claim{store, key, 5, ""}, true);
  return fields;
}

// Two transfers, of which each channel has one: channel 2's second claim waits for one.
struct Crowded : Rig {
  Crowded() : Rig("limits: { transfers_per_session: 2 }\n") {
    open_with_consumer("q");
    open(2);
    client(consume(2, "r", "d"));
    broker(named(2, method::basic_consume_ok, "d"));
    to_client();
    const Buffer body = claim_of(key_b);
    broker(joined({claim(1, key_a), deliver(2, "d", 1, as_text(body)), deliver(2, "d", 2, as_text(body))}));
    REQUIRE(first->asked.size() == 2);
  }
};

}  // namespace

TEST_CASE("a claim is handed over as its payload, and what came behind it follows", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(joined({claim(1, key_a), deliver(1, "c", 2, "small")}));
  CHECK(rig.to_client().empty());
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_client() == "1 deliver 1, 1 header 7, 1 body payload, 1 deliver 2, 1 header 5, 1 body small");
  CHECK(rig.memory->held_bytes() == 0);
}

TEST_CASE("the store that the message names is asked first, then the default, then the others", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a, named_store(key_a, "second")));
  CHECK(rig.first->asked.empty());
  rig.second->say(FailureKind::missing, "not here");
  rig.turn();
  REQUIRE(rig.first->asked.size() == 1);
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_client() == "1 deliver 1, 1 header 7, 1 body payload");
}

TEST_CASE("a store outside consume.stores is not asked", "[session]") {
  Rig rig("consume: { stores: [first] }\n");
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a, named_store(key_a, "second")));
  CHECK(rig.first->asked.empty());
  CHECK(rig.second->asked.empty());
  CHECK(rig.relay->is_parking());
}

TEST_CASE("a claim whose store is unavailable is held, asked for again, and what others need goes on",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  is_unavailable(rig);
  CHECK(rig.first->asked.empty());
  rig.wait_ms(400);
  REQUIRE(rig.first->asked.size() == 1);
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_client() == "1 deliver 1, 1 header 7, 1 body payload");
}

TEST_CASE("a store that never answers is given up after consume.hold_max, and its late answer is ignored",
          "[session]") {
  Rig rig("consume: { hold_max: 20s }\n");
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  for (int i = 0; i < 15; ++i) rig.wait_ms(1000);
  CHECK_FALSE(rig.relay->is_parking());
  for (int i = 0; i < 6; ++i) rig.wait_ms(1000);
  CHECK(rig.relay->is_parking());
  rig.first->give("late");
  rig.turn();
  CHECK(rig.to_client().empty());
}

TEST_CASE("a store that is slow, and not silent, is waited for", "[session]") {
  Rig rig("consume: { hold_max: 20s }\n");
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  for (int i = 0; i < 60; ++i) {
    rig.first->asked.front().watch.lock()->pieces++;
    rig.wait_ms(1000);
  }
  CHECK_FALSE(rig.relay->is_parking());
}

TEST_CASE("transfers have places, and the front of a queue never waits for one", "[session]") {
  Rig rig("limits: { transfers_per_session: 1 }\n");
  rig.open_with_consumer("q");
  rig.open(2);
  rig.broker(joined({claim(1, key_a), claim(2, key_b)}));
  CHECK(rig.first->asked.size() == 1);
  rig.first->give("a");
  rig.turn();
  REQUIRE(rig.first->asked.size() == 1);
  CHECK(rig.first->asked.front().key == key_b);
}

TEST_CASE("after a recover nothing that was held is acknowledged or handed over", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.client(method_frame(1, method::basic_recover, [](Buffer& out) { out.push_back(1); }));
  CHECK(rig.to_broker() == "1 recover");
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_client().empty());
  CHECK(rig.memory->held_bytes() == 0);
}

TEST_CASE("a drain hands over nothing that was not begun", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(joined({claim(1, key_a), deliver(1, "c", 2, "small")}));
  rig.state->draining = true;
  rig.turn();
  CHECK(rig.to_client().empty());
  CHECK(rig.memory->leases(MemoryUse::delivery) == 0);
}

TEST_CASE("what stands behind a held claim waits in a file when it gets too much for memory", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  const std::string body(5000, 'x');
  uint64_t tag = 1;
  while (rig.memory->held_for_client_bytes() < (uint64_t{8} << 20)) rig.broker(deliver(1, "c", ++tag, body));
  const size_t in_memory = rig.channel().deliveries.size();
  for (int i = 0; i < 10; ++i) rig.broker(deliver(1, "c", ++tag, body + std::to_string(i)));
  CHECK(rig.channel().deliveries.back()->is(Delivery::State::spilled));
  // The client is handed all of them, in their order, once the claim is there.
  rig.first->give("payload");
  std::string got;
  for (int i = 0; i < 100000 && rig.memory->leases(MemoryUse::delivery) != 0; ++i) {
    rig.turn();
    got += rig.to_client() + ", ";
    std::this_thread::yield();
  }
  CHECK(rig.memory->held_bytes() == 0);
  CHECK(in_memory + 10 == tag);
  for (int i = 0; i < 10; ++i) CHECK(got.find("x" + std::to_string(i) + ",") != std::string::npos);
  CHECK(got.find("x0,") < got.find("x9,"));
}

TEST_CASE("a channel that the broker closes gives its transfers to those that wait", "[session]") {
  Crowded rig;
  rig.broker(close(1, 404, "NOT_FOUND"));
  CHECK(rig.first->asked.size() == 3);
}

TEST_CASE(
    "a channel that bellhop closes gives its transfers to those that wait, in the turn in which it ends",
    "[session]") {
  Crowded rig;
  rig.client(publish(1, "bellhop.route", "nowhere", "x"));
  CHECK(rig.first->asked.size() == 2);
  rig.broker(method_frame(1, method::channel_close_ok));
  CHECK(rig.to_client() == "1 close 404");
  CHECK(rig.first->asked.size() == 3);
}
