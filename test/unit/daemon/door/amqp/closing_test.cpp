// The ways in which a channel ends.
#include "daemon/door/amqp/closing.h"

#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;

namespace {

// A publish that bellhop refuses, without confirms: it closes the channel.
Buffer refused() {
  return publish(1, "bellhop.route", "nowhere", "x");
}
const Buffer close_ok = method_frame(1, method::channel_close_ok);

}  // namespace

TEST_CASE("a client's close is relayed, and its number is free after the answer", "[session]") {
  Rig rig;
  rig.open();
  rig.client(close(1, 200, "bye"));
  CHECK(rig.to_broker() == "1 close 200");
  CHECK(rig.relay->channels().find(1) != nullptr);
  rig.broker(close_ok);
  CHECK(rig.to_client() == "1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}

TEST_CASE("a broker's close is relayed, and its number is free after the client's answer", "[session]") {
  Rig rig;
  rig.open();
  rig.broker(close(1, 404, "NOT_FOUND"));
  CHECK(rig.to_client() == "1 close 404");
  rig.client(publish(1, "e", "late", "x"));
  CHECK(rig.to_broker().empty());
  rig.client(close_ok);
  CHECK(rig.to_broker() == "1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}

TEST_CASE("closes that cross are both answered", "[session]") {
  Rig rig;
  rig.open();
  rig.client(close(1, 200, "bye"));
  rig.broker(close(1, 404, "NOT_FOUND"));
  CHECK(rig.to_client() == "1 close 404");
  rig.client(close_ok);
  CHECK(rig.to_broker() == "1 close 200, 1 close-ok");
  CHECK(rig.relay->channels().find(1) != nullptr);
  rig.broker(close_ok);
  CHECK(rig.to_client() == "1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}

TEST_CASE("bellhop tells the broker first, and the client after the broker's earlier answers", "[session]") {
  Rig rig;
  rig.open();
  rig.client(refused());
  CHECK(rig.to_broker() == "1 close 200");
  rig.broker(named(1, method::basic_consume_ok, "c"));
  CHECK(rig.to_client() == "1 consume-ok");
  rig.broker(close_ok);
  CHECK(rig.to_client() == "1 close 404");
  rig.client(close_ok);
  CHECK(rig.relay->channels().find(1) == nullptr);
  CHECK(rig.to_broker().empty());
}

TEST_CASE("a client's close that crosses bellhop's is answered at once, and the number can be used again",
          "[session]") {
  Rig rig;
  rig.open();
  rig.client(joined({refused(), close(1, 200, "bye")}));
  rig.broker(close_ok);
  CHECK(rig.to_client() == "1 close 404, 1 close-ok");
  rig.to_broker();
  rig.client(method_frame(1, method::channel_open, [](Buffer& out) { out.push_back(0); }));
  CHECK(rig.to_broker() == "1 open");
  CHECK(rig.channel().end.is_open());
}

TEST_CASE("the broker's close that crosses bellhop's gives the reason", "[session]") {
  Rig rig;
  rig.open();
  rig.client(refused());
  rig.broker(joined({close(1, 406, "PRECONDITION_FAILED"), close_ok}));
  CHECK(rig.to_broker() == "1 close 200, 1 close-ok");
  CHECK(rig.to_client() == "1 close 406");
}

TEST_CASE("a close waits until the broker has the whole of a publish that is being relayed", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  Buffer half = publish(1, "e", "k", "0123456789");
  half.resize(half.size() - body_frame(1, "0123456789").size());
  put(half, body_frame(1, "01234"));
  rig.client(half);
  rig.relay->channels().find(1)->tags.add(1, TagWindow::Owner::bellhop);
  rig.client(body_frame(1, "56789"));
  CHECK(rig.to_broker() == "1 publish e/k, 1 header 10, 1 body 01234, 1 body 56789");
  CHECK(rig.channel().end.is_open());
}

TEST_CASE("a second open of an open channel ends the connection", "[session]") {
  Rig rig;
  rig.open();
  rig.client(close(1, 200, "bye"));
  rig.client(method_frame(1, method::channel_open, [](Buffer& out) { out.push_back(0); }));
  CHECK(rig.connection_closed == "504 CHANNEL_ERROR - second 'channel.open' seen");
}

TEST_CASE("a close-ok stands behind the return that came before it", "[session]") {
  Rig rig("claim_check: { store: first, threshold: 10B }\n");
  rig.open_with_confirms();
  rig.client(publish(1, "amq.direct", "k", "0123456789", true, "id-1"));
  rig.first->store(0, "key-1");
  rig.turn();
  Buffer fields;
  put_claim_headers(fields, *rig.channel().sent.front().stored.claim(), false);
  Buffer back;
  proto::put_return(back, 1, {312, "NO_ROUTE", "amq.direct", "k"});
  put(back, header_frame(1, 8, "id-1", fields));
  put(back, body_frame(1, "\xAC\x01\x01key-1"));
  rig.client(close(1, 200, "bye"));
  rig.broker(joined({back, close_ok}));
  CHECK(rig.to_client().empty());
  CHECK(rig.relay->owes_content(true));
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() == "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}
