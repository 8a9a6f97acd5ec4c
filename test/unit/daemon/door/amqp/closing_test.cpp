// The ways in which a channel ends.
#include "daemon/door/amqp/closing.h"

#include "test/unit/daemon/door/amqp/claims.h"

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

TEST_CASE("a second open of an open channel ends the connection", "[session]") {
  Rig rig;
  rig.open();
  rig.client(close(1, 200, "bye"));
  rig.client(method_frame(1, method::channel_open, [](Buffer& out) { out.push_back(0); }));
  CHECK(rig.connection_closed == "504 CHANNEL_ERROR - second 'channel.open' seen");
}

TEST_CASE("a close-ok stands behind the return that came before it", "[session]") {
  Rig rig(offloads_ten_bytes);
  rig.open_with_confirms();
  const Buffer back = returned_claim(rig);
  rig.client(close(1, 200, "bye"));
  rig.broker(joined({back, close_ok}));
  CHECK(rig.to_client().empty());
  CHECK(rig.relay->owes_content(true));
  rig.first->give("0123456789");
  rig.turn();
  CHECK(rig.to_client() == "1 return 312 amq.direct/k, 1 header 10, 1 body 0123456789, 1 close-ok");
  CHECK(rig.relay->channels().find(1) == nullptr);
}
