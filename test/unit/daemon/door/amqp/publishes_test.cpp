// Publishes on their way up, and what the broker says became of them.
#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;

namespace {

const char* const claims = R"(
claim_check: { store: first, threshold: 10B }
)";

Buffer returned(uint16_t channel, std::string_view exchange, std::string_view key, std::string_view body,
                std::string_view message_id = {}) {
  Buffer out;
  proto::put_return(out, channel, {312, "NO_ROUTE", exchange, key});
  put(out, header_frame(channel, body.size(), message_id));
  put(out, body_frame(channel, body));
  return out;
}
Buffer nack(uint16_t channel, uint64_t tag) {
  Buffer out;
  proto::put_nack(out, channel, tag, false, false);
  return out;
}

}  // namespace

TEST_CASE("a publish without a rule is relayed, and its confirm too", "[session]") {
  Rig rig;
  rig.open_with_confirms();
  rig.client(publish(1, "e", "k", "hello"));
  CHECK(rig.to_broker() == "1 publish e/k, 1 header 5, 1 body hello");
  rig.broker(ack(1, 1));
  CHECK(rig.to_client() == "1 ack 1");
  CHECK(rig.relay->is_drained());
}

TEST_CASE("a large body goes to the store, and what follows waits for it in its order", "[session]") {
  Rig rig(claims);
  rig.open_with_confirms();
  rig.client(joined({publish(1, "e", "large", "0123456789"), publish(1, "e", "small", "x"), ack(1, 7)}));
  CHECK(rig.to_broker().empty());
  REQUIRE(rig.first->puts.size() == 1);
  CHECK(rig.first->puts[0]->bytes == "0123456789");
  CHECK_FALSE(rig.relay->is_settled());
  rig.first->store(0, "key-1");
  rig.turn();
  CHECK(rig.to_broker() ==
        "1 publish e/large, 1 header 8, 1 body \xAC\x01\x01key-1, 1 publish e/small, 1 header 1, 1 body x, "
        "1 ack 7");
  CHECK(rig.relay->is_settled());
}

TEST_CASE("uploads of one channel that end in another order leave in the client's", "[session]") {
  Rig rig(claims);
  rig.open();
  rig.client(joined({publish(1, "e", "a", "0123456789"), publish(1, "e", "b", "0123456789")}));
  rig.first->store(1, "key-b");
  rig.turn();
  CHECK(rig.to_broker().empty());
  rig.first->store(0, "key-a");
  rig.turn();
  CHECK(rig.to_broker() ==
        "1 publish e/a, 1 header 8, 1 body \xAC\x01\x01key-a, 1 publish e/b, 1 header 8, 1 body "
        "\xAC\x01\x01key-b");
}

TEST_CASE("a refused publish is nacked, and later confirms have the client's tags", "[session]") {
  Rig rig(claims);
  rig.open_with_confirms();
  rig.client(joined({publish(1, "e", "large", "0123456789"), publish(1, "e", "small", "x")}));
  rig.first->puts[0]->done(Error{"the disk is full"});
  rig.turn();
  CHECK(rig.to_client() == "1 nack 1");
  CHECK(rig.to_broker() == "1 publish e/small, 1 header 1, 1 body x");
  rig.broker(ack(1, 1));
  CHECK(rig.to_client() == "1 ack 2");
}

TEST_CASE("a publish that is refused without confirms closes its channel", "[session]") {
  Rig rig(claims);
  rig.open();
  rig.client(publish(1, "e", "large", "0123456789"));
  rig.first->puts[0]->done(Error{"the disk is full"});
  rig.turn();
  CHECK(rig.to_broker() == "1 close 200");
  CHECK(rig.to_client().empty());
  rig.broker(method_frame(1, method::channel_close_ok));
  CHECK(rig.to_client() == "1 close 541");
}

TEST_CASE("a return goes back as the client sent it, before its confirm", "[session]") {
  Rig rig("routes: [ { name: r, match: { exchange: e }, to: { exchange: other, routing_key: moved } } ]\n");
  rig.open_with_confirms();
  rig.client(publish(1, "e", "k", "hello", true, "id-1"));
  CHECK(rig.to_broker() == "1 publish other/moved, 1 header 5, 1 body hello");
  rig.broker(joined({returned(1, "other", "moved", "hello", "id-1"), ack(1, 1)}));
  CHECK(rig.to_client() == "1 return 312 e/k, 1 header 5, 1 body hello, 1 ack 1");
  CHECK(rig.channel().sent.empty());
}

TEST_CASE("a returned claim waits for its payload, and its confirm waits for that", "[session]") {
  Rig rig(claims);
  rig.open_with_confirms();
  rig.client(publish(1, "amq.direct", "k", "0123456789", true, "id-1"));
  rig.first->store(0, "key-1");
  rig.turn();
  CHECK(rig.to_broker() == "1 publish amq.direct/k, 1 header 8, 1 body \xAC\x01\x01key-1");
  // The broker gives it back as it was sent, with the claim's headers.
  const Sent& sent = rig.channel().sent.front();
  CHECK(sent.message_id == "id-1");
  Buffer fields;
  put_claim_headers(fields, *sent.stored.claim(), false);
  Buffer back;
  proto::put_return(back, 1, {312, "NO_ROUTE", "amq.direct", "k"});
  put(back, header_frame(1, 8, "id-1", fields));
  put(back, body_frame(1, "\xAC\x01\x01key-1"));
  rig.broker(joined({back, ack(1, 1)}));
  CHECK(rig.to_client().empty());
  REQUIRE(rig.first->asked.size() == 1);
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() == "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 ack 1");
  CHECK(rig.first->removed == std::vector<std::string>{"key-1"});
}

TEST_CASE("a rolled-back publish takes its payload along", "[session]") {
  Rig rig(claims);
  rig.open();
  rig.client(method_frame(1, method::tx_select));
  rig.client(publish(1, "e", "k", "0123456789"));
  rig.first->store(0, "key-1");
  rig.turn();
  rig.client(method_frame(1, method::tx_rollback));
  CHECK(rig.first->removed.empty());
  rig.broker(method_frame(1, method::tx_rollback_ok));
  CHECK(rig.first->removed == std::vector<std::string>{"key-1"});
}

TEST_CASE("a committed publish keeps its payload, whatever becomes of the channel", "[session]") {
  Rig rig(claims);
  rig.open();
  rig.client(method_frame(1, method::tx_select));
  rig.client(publish(1, "e", "k", "0123456789"));
  rig.first->store(0, "key-1");
  rig.turn();
  rig.client(method_frame(1, method::tx_commit));
  rig.broker(close(1, 404, "NOT_FOUND"));
  rig.client(method_frame(1, method::channel_close_ok));
  CHECK(rig.relay->channels().find(1) == nullptr);
  CHECK(rig.first->removed.empty());
}

TEST_CASE("a broker's nack is the client's, by its tag", "[session]") {
  Rig rig(claims);
  rig.open_with_confirms();
  rig.client(publish(1, "e", "k", "0123456789"));
  rig.first->store(0, "key-1");
  rig.turn();
  rig.client(publish(1, "e", "k", "x"));
  rig.broker(nack(1, 2));
  CHECK(rig.to_client() == "1 nack 2");
  rig.broker(ack(1, 1));
  CHECK(rig.to_client() == "1 ack 1");
}

TEST_CASE("an upload that a channel's end cuts off is aborted, and gives its place back", "[session]") {
  Rig rig(claims);
  rig.open();
  Buffer frames = publish(1, "e", "k", "0123456789");
  frames.resize(frames.size() - body_frame(1, "0123456789").size());
  put(frames, body_frame(1, "01234"));
  rig.client(frames);
  rig.broker(close(1, 404, "NOT_FOUND"));
  CHECK(rig.first->puts[0]->is_dropped);
  CHECK(rig.memory->held_bytes() == 0);
}
