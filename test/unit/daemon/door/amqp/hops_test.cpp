// Publishes to bellhop.next: the result goes on, then its input is acknowledged.
#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;

namespace {

const char* const pipeline = "pipelines: { p: { steps: [ one, two ] } }\n";

// A session with one delivery of step one, tag 5, handed to the client; the broker has the pipeline's
// exchange.
struct Worker : Rig {
  explicit Worker(bool with_confirms = true) : Rig(pipeline) {
    if (with_confirms) {
      open_with_confirms();
    } else {
      open();
    }
    client(consume(1, "p.one", "c"));
    broker(named(1, method::basic_consume_ok, "c"));
    broker(deliver(1, "c", 5, "input"));
    to_client();
    to_broker();
  }
  void hop(std::string_view body = "result", bool mandatory = false) {
    Buffer fields;
    proto::put_field(fields, "bellhop-ack", int64_t{5});
    client(publish(1, "bellhop.next", "", body, mandatory, "id-1", fields));
  }
  // The private channel is open, and the exchange is there.
  void answer_questions() {
    broker(method_frame(private_id, method::channel_open_ok, [](Buffer& out) { put_u32(out, 0); }));
    broker(method_frame(private_id, method::confirm_select_ok));
    broker(method_frame(private_id, method::exchange_declare_ok));
  }
};

}  // namespace

TEST_CASE("a hop's input is acknowledged, and the client confirmed, when the broker has the result",
          "[session]") {
  Worker rig;
  rig.hop();
  rig.answer_questions();
  const std::string sent = rig.to_broker();
  CHECK(sent.find("9 publish p/two, 9 header 6, 9 body result") != std::string::npos);
  CHECK(sent.find("1 ack 5") == std::string::npos);
  CHECK(rig.to_client().empty());
  CHECK_FALSE(rig.relay->is_settled());
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.to_broker() == "1 ack 5");
  CHECK(rig.to_client() == "1 ack 1");
  CHECK(rig.relay->is_settled());
}

TEST_CASE("a hop that the broker nacks leaves its input with the client", "[session]") {
  Worker rig;
  rig.hop();
  rig.answer_questions();
  rig.to_broker();
  Buffer nack;
  proto::put_nack(nack, Rig::private_id, 1, false, false);
  rig.broker(nack);
  CHECK(rig.to_client() == "1 nack 1");
  CHECK(rig.to_broker().empty());
  rig.client(ack(1, 5));
  CHECK(rig.to_broker() == "1 ack 5");
}

TEST_CASE("while a hop is under way its input cannot be acknowledged by the client", "[session]") {
  Worker rig;
  rig.hop();
  rig.answer_questions();
  rig.to_broker();
  rig.client(ack(1, 5));
  CHECK(rig.to_broker() == "1 close 200");
}

TEST_CASE("a channel's close waits for its hops", "[session]") {
  Worker rig;
  rig.hop();
  rig.answer_questions();
  rig.to_broker();
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker().empty());
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.to_broker() == "1 ack 5, 1 close 200");
}

TEST_CASE("a hop with a tag that the client does not have closes the channel", "[session]") {
  Worker rig;
  Buffer fields;
  proto::put_field(fields, "bellhop-ack", int64_t{6});
  rig.client(publish(1, "bellhop.next", "", "result", false, {}, fields));
  CHECK(rig.to_broker() == "1 close 200");
}

TEST_CASE("a hop that comes back is handed back as the client sent it", "[session]") {
  Worker rig;
  rig.hop("result", true);
  rig.answer_questions();
  rig.to_broker();
  Buffer back;
  proto::put_return(back, Rig::private_id, {312, "NO_ROUTE", "p", "two"});
  put(back, header_frame(Rig::private_id, 6, "id-1"));
  put(back, body_frame(Rig::private_id, "result"));
  rig.broker(joined({back, ack(Rig::private_id, 1)}));
  // What the exchange keeps of what it returns is asked: here nothing.
  CHECK(rig.to_broker().find("9 method 40.10") != std::string::npos);
  rig.broker(close(Rig::private_id, 406,
                   "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'p' in vhost "
                   "'/': received the value 'x' of type 'longstr' but current is none"));
  CHECK(rig.to_client() == "1 return 312 bellhop.next/, 1 header 6, 1 body result, 1 nack 1");
}

TEST_CASE("a failed hop closes its channel once the broker has the whole of the publish that is half sent",
          "[session]") {
  Worker rig(false);
  rig.hop();
  rig.answer_questions();
  rig.to_broker();
  rig.client(half_of(publish(1, "e", "k", "0123456789")));
  CHECK(rig.to_broker() == "1 publish e/k, 1 header 10, 1 body 01234");
  Buffer nack;
  proto::put_nack(nack, Rig::private_id, 1, false, false);
  rig.broker(nack);
  CHECK(rig.to_broker().empty());
  rig.client(body_frame(1, "56789"));
  CHECK(rig.to_broker() == "1 body 56789, 1 close 200");
}

TEST_CASE("hops in flight take memory, and give it back", "[session]") {
  Worker rig;
  rig.hop();
  rig.answer_questions();
  CHECK(rig.memory->held_bytes() > 0);
  rig.broker(ack(Rig::private_id, 1));
  CHECK(rig.memory->held_bytes() == 0);
}
