// What comes to the client in which order, while claims before it are fetched or held.
#include "test/unit/daemon/door/amqp/claims.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;
using FailureKind = FetchFailure::Kind;

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

TEST_CASE("a consumer's end waits for what comes soon, and what is held goes back to its queue",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.client(cancel(1, "c"));
  CHECK(rig.to_broker() == "1 cancel");
  rig.broker(named(1, method::basic_cancel_ok, "c"));
  CHECK(rig.to_client().empty());
  is_unavailable(rig);
  CHECK(rig.to_client() == "1 cancel-ok");
  CHECK(rig.to_broker() == "1 reject 1 requeue");
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
  rig.broker(half_of(deliver(2, "d", 2, "0123456789")));
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
  is_unavailable(rig);
  rig.client(joined({cancel(1, "c"), consume(1, "q", "c")}));
  rig.to_broker();
  // All in one read, the new delivery not yet whole.
  rig.broker(joined({named(1, method::basic_cancel_ok, "c"), named(1, method::basic_consume_ok, "c"),
                     half_of(deliver(1, "c", 2, "0123456789"))}));
  rig.broker(body_frame(1, "56789"));
  CHECK(rig.to_client() == "1 cancel-ok, 1 consume-ok, 1 deliver 2, 1 header 10, 1 body 01234, 1 body 56789");
  CHECK(rig.to_broker() == "1 reject 1 requeue");
}

TEST_CASE("what is handed over late stands behind a content that is half arrived, and that goes on",
          "[session]") {
  Rig rig;
  rig.open_with_consumer("q.parked", true);
  rig.broker(claim(1, key_a));
  rig.broker(half_of(deliver(1, "c", 2, "0123456789")));
  // Out of a parked queue it is handed over as it stands, at its place.
  rig.first->say(FailureKind::corrupt, "another checksum");
  rig.turn();
  rig.broker(joined({body_frame(1, "56789"), deliver(1, "c", 3, "next")}));
  CHECK(rig.to_client() ==
        "1 deliver 1, 1 header 39, 1 body \xAC\x01\x01" + key_a +
            ", 1 deliver 2, 1 header 10, 1 body 01234, 1 body 56789, 1 deliver 3, 1 header 4, 1 body next");
}

TEST_CASE("an answer that bellhop makes stands behind a return that is half arrived", "[session]") {
  Rig rig(offloads_ten_bytes);
  rig.open_with_confirms();
  const Buffer back = returned_claim(rig);
  Buffer half;
  proto::put_return(half, 1, {312, "NO_ROUTE", "e", "other"});
  put(half, header_frame(1, 8, "id-2"));
  put(half, body_frame(1, "half"));
  rig.broker(joined({back, half}));
  rig.relay->channels().find(1)->returns.push_frames(1, rig.channel().generation, DeliveryKind::returned,
                                                     method_frame(1, method::basic_get_empty));
  rig.broker(body_frame(1, "full"));
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() ==
        "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 return 312 e/other, 1 header 8, "
        "1 body half, 1 body full, 1 get-empty");
}

TEST_CASE("nothing is acknowledged behind the client's close of the channel", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.client(get(1, "q", true));
  rig.to_broker();
  rig.broker(claim(1, key_a));
  rig.broker(got(1, 2, "got"));
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker() == "1 close 200");
  rig.first->give("payload");
  rig.turn();
  CHECK(rig.to_broker().empty());
  rig.broker(method_frame(1, method::channel_close_ok));
  const std::string told = rig.to_client();
  CHECK(told.substr(told.size() - std::string("1 close-ok").size()) == "1 close-ok");
}

TEST_CASE("a get that has half arrived when the client closes is not acknowledged behind that", "[session]") {
  Rig rig;
  rig.open();
  rig.client(get(1, "q", true));
  rig.broker(half_of(got(1, 1, "0123456789")));
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker() == "1 get, 1 close 200");
  rig.broker(body_frame(1, "56789"));
  CHECK(rig.to_client() == "1 method 60.71, 1 header 10, 1 body 01234, 1 body 56789");
  CHECK(rig.to_broker().empty());
}

TEST_CASE("behind a close-ok nothing more comes to the client", "[session]") {
  Rig rig(offloads_ten_bytes);
  rig.open_with_consumer("q");
  rig.client(method_frame(1, method::confirm_select, [](Buffer& out) { out.push_back(0); }));
  const Buffer back = returned_claim(rig);
  rig.client(close(1, 200, "bye"));
  rig.broker(joined({back, deliver(1, "c", 1, "small"), method_frame(1, method::channel_close_ok)}));
  CHECK(rig.to_client().empty());
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() == "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}

TEST_CASE("a basic.get whose channel the broker closed gets no answer", "[session]") {
  Rig rig;
  rig.open();
  rig.client(get(1, "q"));
  const Buffer body = claim_of(key_a);
  rig.broker(got(1, 1, as_text(body)));
  is_missing(rig);
  rig.open_private_channel();
  rig.broker(close(1, 404, "NOT_FOUND"));
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.to_client() == "1 close 404");
}
