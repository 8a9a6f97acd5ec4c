// Claims that the client will not be handed: parked, rejected, or left.
#include "test/unit/daemon/door/amqp/claims.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;
using FailureKind = FetchFailure::Kind;

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

TEST_CASE("a recover takes back what failed and was not parked yet", "[session]") {
  Rig rig;
  rig.open_with_consumer("q");
  rig.broker(claim(1, key_a));
  rig.first->say(FailureKind::corrupt, "another checksum");
  rig.client(method_frame(1, method::basic_recover, [](Buffer& out) { out.push_back(1); }));
  CHECK_FALSE(rig.relay->is_parking());
  CHECK(rig.to_broker() == "1 recover");
}
