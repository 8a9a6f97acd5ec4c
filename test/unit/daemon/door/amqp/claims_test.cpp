// Claims on their way down: fetched, held, handed over in order, parked.
#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;
using FailureKind = FetchFailure::Kind;

namespace {

const std::string key_a = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
                  key_b = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb";

Buffer claim(uint64_t tag, const std::string& key, const Buffer& fields = {}) {
  const Buffer body = claim_of(key);
  return deliver(1, "c", tag, as_text(body), fields);
}
Buffer named_store(const std::string& key, const std::string& store) {
  Buffer fields;
  put_claim_headers(fields, Claim{store, key, 5, ""}, true);
  return fields;
}
// Nobody has it: the stores say so one after the other.
void is_missing(Rig& rig) {
  rig.first->say(FailureKind::missing, "claim: not in first");
  rig.second->say(FailureKind::missing, "claim: not in second");
  rig.turn();
}

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

TEST_CASE("claims that are fetched in another order are handed over in the broker's", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(joined({claim(1, key_a), claim(2, key_b)}));
  REQUIRE(rig.first->asked.size() == 2);
  std::swap(rig.first->asked[0], rig.first->asked[1]);
  rig.first->give("second");
  rig.turn();
  CHECK(rig.to_client().empty());
  rig.first->give("first");
  rig.turn();
  CHECK(rig.to_client() == "1 deliver 1, 1 header 5, 1 body first, 1 deliver 2, 1 header 6, 1 body second");
}

TEST_CASE("an answer overtakes what is held, and the client's multiple ack leaves that alone", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(joined({deliver(1, "c", 1, "small"), claim(2, key_a)}));
  CHECK(rig.to_client() == "1 deliver 1, 1 header 5, 1 body small");
  rig.client(ack(1, 0, true));
  CHECK(rig.to_broker() == "1 ack 1 multiple");
  rig.broker(method_frame(1, method::basic_recover_ok));
  CHECK(rig.to_client() == "1 method 60.111");
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
  rig.first->say(FailureKind::unavailable, "no route to host");
  rig.second->say(FailureKind::missing, "not here");
  rig.turn();
  CHECK(rig.first->asked.empty());
  rig.wait_ms(400);
  REQUIRE(rig.first->asked.size() == 1);
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_client() == "1 deliver 1, 1 header 7, 1 body payload");
}

TEST_CASE("after consume.hold_max a held claim is parked alone", "[session]") {
  Rig rig("consume: { hold_max: 2s }\n");
  rig.open_with_consumer("q");
  rig.broker(joined({claim(1, key_a), deliver(1, "c", 2, "small")}));
  for (int i = 0; i < 20 && !rig.relay->is_parking(); ++i) {
    if (!rig.first->asked.empty()) rig.first->say(FailureKind::unavailable, "no route to host");
    if (!rig.second->asked.empty()) rig.second->say(FailureKind::missing, "not here");
    rig.wait_ms(500);
  }
  CHECK(rig.relay->is_parking());
  CHECK(rig.to_client() == "1 deliver 2, 1 header 5, 1 body small");
  CHECK(rig.channel().end.is_open());
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

TEST_CASE("a claim that nobody has is parked: first the broker takes it, then it is acknowledged",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(joined({claim(1, key_a), deliver(1, "c", 2, "small")}));
  is_missing(rig);
  CHECK(rig.to_client() == "1 deliver 2, 1 header 5, 1 body small");
  CHECK(rig.to_broker() == "9 open");
  rig.open_private_channel();
  const std::string sent = rig.to_broker();
  CHECK(sent.find("9 publish /q.parked, 9 header 39") != std::string::npos);
  CHECK(sent.find("1 ack") == std::string::npos);
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.to_broker() == "1 ack 1");
  CHECK_FALSE(rig.relay->is_parking());
}

TEST_CASE("what cannot be parked stays unacknowledged alone, and the client's close does not wait",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  is_missing(rig);
  rig.open_private_channel();
  rig.to_broker();
  rig.broker(joined({close(Rig::private_id, 403, "ACCESS_REFUSED")}));
  CHECK_FALSE(rig.relay->is_parking());
  CHECK(rig.to_broker().find("1 ack") == std::string::npos);
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker().find("1 close 200") != std::string::npos);
}

TEST_CASE("a close waits for a park that is under way", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  is_missing(rig);
  rig.open_private_channel();
  rig.to_broker();
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker().empty());
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.to_broker() == "1 ack 1, 1 close 200");
}

TEST_CASE("with undeliverable: reject a claim that nobody has is rejected", "[session]") {
  Rig rig("consume: { undeliverable: reject }\n");
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  is_missing(rig);
  CHECK(rig.to_broker() == "1 reject 1");
}

TEST_CASE("a no_ack consumer that ends before it was handed a claim leaves that claim parked", "[session]") {
  Rig rig;
  rig.open_with_consumer("q", true);
  rig.broker(claim(1, key_a));
  rig.client(close(1, 200, "bye"));
  CHECK(rig.relay->is_parking());
}

TEST_CASE("a consumer's end waits for what comes soon, and what is held goes back to its queue",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.client(cancel(1, "c"));
  CHECK(rig.to_broker() == "1 cancel");
  rig.broker(named(1, method::basic_cancel_ok, "c"));
  CHECK(rig.to_client().empty());
  rig.first->say(FailureKind::unavailable, "no route to host");
  rig.second->say(FailureKind::missing, "not here");
  rig.turn();
  CHECK(rig.to_client() == "1 cancel-ok");
  CHECK(rig.to_broker() == "1 reject 1 requeue");
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

TEST_CASE("what the client has whole is its own, also when another channel's content goes out meanwhile",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.open(2);
  rig.client(consume(2, "r", "d"));
  rig.broker(named(2, method::basic_consume_ok, "d"));
  rig.to_client();
  rig.to_broker();
  rig.broker(claim(1, key_a));
  const Buffer body = claim_of(key_b);
  rig.broker(deliver(2, "d", 1, as_text(body)));
  // Of what stands behind it on channel 2 only the beginning has come.
  Buffer half = deliver(2, "d", 2, "0123456789");
  half.resize(half.size() - body_frame(2, "0123456789").size());
  put(half, body_frame(2, "01234"));
  rig.broker(half);
  rig.first->give_in_pieces("payload");
  rig.relay->pump();
  CHECK(rig.relay->is_half_out());
  CHECK(rig.to_client() == "1 deliver 1, 1 header 7");
  rig.relay->pump();  // the socket is empty again: the last piece is read
  // Channel 2's claim fails while channel 1's body is on its way.
  rig.first->say(FailureKind::corrupt, "another checksum");
  rig.turn();
  CHECK(rig.to_client() == "1 body payload, 2 deliver 2, 2 header 10, 2 body 01234");
  rig.client(ack(1, 1));
  CHECK(rig.to_broker().find("1 ack 1") != std::string::npos);
  CHECK(rig.channel().end.is_open());
}

TEST_CASE("a consumer's end leaves a new consumer of the same tag alone, and comes before it", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.first->say(FailureKind::unavailable, "no route to host");
  rig.second->say(FailureKind::missing, "not here");
  rig.turn();
  rig.client(joined({cancel(1, "c"), consume(1, "q", "c")}));
  rig.to_broker();
  // All in one read, the new delivery not yet whole.
  Buffer half = deliver(1, "c", 2, "0123456789");
  half.resize(half.size() - body_frame(1, "0123456789").size());
  put(half, body_frame(1, "01234"));
  rig.broker(joined({named(1, method::basic_cancel_ok, "c"), named(1, method::basic_consume_ok, "c"), half}));
  rig.broker(body_frame(1, "56789"));
  CHECK(rig.to_client() == "1 cancel-ok, 1 consume-ok, 1 deliver 2, 1 header 10, 1 body 01234, 1 body 56789");
  CHECK(rig.to_broker() == "1 reject 1 requeue");
}

TEST_CASE("a recover takes back what failed and was not parked yet", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.first->say(FailureKind::corrupt, "another checksum");
  rig.client(method_frame(1, method::basic_recover, [](Buffer& out) { out.push_back(1); }));
  CHECK_FALSE(rig.relay->is_parking());
  CHECK(rig.to_broker() == "1 recover");
}

TEST_CASE("a channel that ends gives its transfers to those that wait", "[session]") {
  Rig rig("limits: { transfers_per_session: 1 }\n");
  rig.open_with_consumer("q");
  rig.open(2);
  rig.client(consume(2, "r", "d"));
  rig.broker(named(2, method::basic_consume_ok, "d"));
  rig.broker(joined({claim(1, key_a), deliver(2, "d", 1, "small")}));
  rig.broker(claim(2, key_b));
  REQUIRE(rig.first->asked.size() == 1);
  const Buffer body = claim_of(key_b);
  rig.broker(deliver(2, "d", 2, as_text(body)));
  rig.broker(close(1, 404, "NOT_FOUND"));
  CHECK(rig.first->asked.back().key == key_b);
}

TEST_CASE("what is handed over late stands behind a content that is half arrived, and that goes on",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q.parked", true);
  rig.broker(claim(1, key_a));
  Buffer half = deliver(1, "c", 2, "0123456789");
  half.resize(half.size() - body_frame(1, "0123456789").size());
  put(half, body_frame(1, "01234"));
  rig.broker(half);
  // Out of a parked queue it is handed over as it stands, at its place.
  rig.first->say(FailureKind::corrupt, "another checksum");
  rig.turn();
  rig.broker(joined({body_frame(1, "56789"), deliver(1, "c", 3, "next")}));
  CHECK(rig.to_client() ==
        "1 deliver 1, 1 header 39, 1 body \xAC\x01\x01" + key_a +
            ", 1 deliver 2, 1 header 10, 1 body 01234, 1 body 56789, 1 deliver 3, 1 header 4, 1 body next");
}

TEST_CASE("an answer that bellhop makes stands behind a return that is half arrived", "[session]") {
  Rig rig("claim_check: { store: first, threshold: 10B }\n");
  rig.open_with_confirms();
  rig.client(publish(1, "amq.direct", "k", "0123456789", true, "id-1"));
  rig.first->store(0, "key-1");
  rig.turn();
  Buffer fields;
  put_claim_headers(fields, *rig.channel().sent.front().stored.claim(), false);
  Buffer first_return, half;
  proto::put_return(first_return, 1, {312, "NO_ROUTE", "amq.direct", "k"});
  put(first_return, header_frame(1, 8, "id-1", fields));
  put(first_return, body_frame(1, "\xAC\x01\x01key-1"));
  proto::put_return(half, 1, {312, "NO_ROUTE", "e", "other"});
  put(half, header_frame(1, 8, "id-2"));
  put(half, body_frame(1, "half"));
  rig.broker(joined({first_return, half}));
  rig.relay->channels().find(1)->returns.push_frames(1, rig.channel().generation, DeliveryKind::returned,
                                                     method_frame(1, method::basic_get_empty));
  rig.broker(body_frame(1, "full"));
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() ==
        "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 return 312 e/other, 1 header 8, 1 body "
        "half, "
        "1 body full, 1 get-empty");
}

TEST_CASE("nothing is acknowledged behind the client's close of the channel", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.client(method_frame(1, method::basic_get, [](Buffer& out) {
    put_u16(out, 0);
    put_shortstr(out, "q");
    out.push_back(1);
  }));
  rig.to_broker();
  rig.broker(claim(1, key_a));
  const Buffer body = body_frame(1, "got");
  rig.broker(joined({method_frame(1, method::basic_get_ok,
                                  [](Buffer& out) {
                                    put_u64(out, 2);
                                    out.push_back(0);
                                    put_shortstr(out, "");
                                    put_shortstr(out, "q");
                                    put_u32(out, 0);
                                  }),
                     header_frame(1, 3), body}));
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker() == "1 close 200");
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_broker().empty());
  rig.broker(method_frame(1, method::channel_close_ok));
  const std::string told = rig.to_client();
  CHECK(told.substr(told.size() - std::string("1 close-ok").size()) == "1 close-ok");
}
