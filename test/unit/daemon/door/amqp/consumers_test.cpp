#include "daemon/door/amqp/consumers.h"

#include "test/support/catch.h"

using namespace bellhop;

TEST_CASE("a named consumer is known as soon as it was asked for", "[session]") {
  Consumers consumers;
  consumers.ask("c", {"q", true}, true);
  REQUIRE(consumers.find("c") != nullptr);
  CHECK(consumers.find("c")->queue == "q");
  CHECK(consumers.has_no_ack());
  consumers.accept("c");
  CHECK(consumers.find("c")->queue == "q");
}

TEST_CASE("a consumer that the broker names is known with its answer", "[session]") {
  Consumers consumers;
  consumers.ask("mine", {"first"}, true);
  consumers.ask("", {"second", true}, true);
  CHECK(consumers.size() == 1);
  consumers.accept("mine");
  consumers.accept("amq.ctag-1");
  REQUIRE(consumers.find("amq.ctag-1") != nullptr);
  CHECK(consumers.find("amq.ctag-1")->queue == "second");
  CHECK(consumers.has_no_ack());
}

TEST_CASE("a cancelled consumer is known until the broker has answered", "[session]") {
  Consumers consumers;
  consumers.ask("c", {"q", true}, true);
  consumers.accept("c");
  consumers.cancel("c", true);
  CHECK(consumers.find("c") != nullptr);
  CHECK(consumers.end("c", true));
  CHECK(consumers.find("c") == nullptr);
  CHECK_FALSE(consumers.has_no_ack());
}

TEST_CASE("a consumer that is cancelled before it was accepted is forgotten as well", "[session]") {
  Consumers consumers;
  consumers.ask("c", {"q", true}, true);
  consumers.cancel("c", true);
  consumers.accept("c");
  CHECK(consumers.end("c", true));
  CHECK(consumers.size() == 0);
  CHECK_FALSE(consumers.has_no_ack());
}

TEST_CASE("a tag that is in use again is the new consumer's, whose end is its own cancel's", "[session]") {
  Consumers consumers;
  consumers.ask("c", {"old"}, true);
  consumers.accept("c");
  consumers.cancel("c", true);
  consumers.ask("c", {"new", true}, true);
  CHECK(consumers.end("c", true));
  REQUIRE(consumers.find("c") != nullptr);
  CHECK(consumers.find("c")->queue == "new");
  consumers.accept("c");
  consumers.cancel("c", false);
  CHECK_FALSE(consumers.end("c", true));
  CHECK(consumers.size() == 0);
  CHECK_FALSE(consumers.has_no_ack());
}

TEST_CASE("the broker's own cancel ends a consumer, and is told", "[session]") {
  Consumers consumers;
  consumers.ask("c", {"q"}, false);
  CHECK(consumers.end("c", false));
  CHECK(consumers.size() == 0);
  CHECK(consumers.end("unknown", false));
}
