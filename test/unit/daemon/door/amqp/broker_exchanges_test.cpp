#include "daemon/door/amqp/broker_exchanges.h"

#include "test/support/catch.h"

using bellhop::is_plain_direct;
using bellhop::type_in_refusal;

TEST_CASE("the type of an exchange is read off RabbitMQ's refusal to declare it", "[broker_exchanges]") {
  CHECK(
      type_in_refusal("PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received "
                      "'direct' but current is 'topic'") == "topic");
  // 3.10 quotes an atom with a dash twice, 4.x once.
  CHECK(
      type_in_refusal("PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received "
                      "'direct' but current is ''x-recent-history''") == "x-recent-history");
  CHECK(
      type_in_refusal("PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received "
                      "'direct' but current is 'x-delayed-message'") == "x-delayed-message");
  // A name that looks like the text's end does not count.
  CHECK(type_in_refusal(
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'but current is 'x'' in vhost "
            "'/': received 'direct' but current is 'fanout'") == "fanout");
}

TEST_CASE("a durable direct exchange without an alternate exchange keeps nothing", "[broker_exchanges]") {
  CHECK(is_plain_direct(
      "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'e' in vhost '/': "
      "received the value '0' of type 'signedint' but current is none"));
  CHECK(!is_plain_direct(
      "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'e' in vhost '/': "
      "received the value '0' of type 'signedint' but current is the value 'ae' of type 'longstr'"));
  CHECK(!is_plain_direct(
      "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'e' in vhost '/': received "
      "'true' but current is 'false'"));
}

TEST_CASE("a refusal for another reason says no type", "[broker_exchanges]") {
  CHECK(type_in_refusal(
            "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'e' in vhost '/': received "
            "'true' but current is 'false'")
            .empty());
  CHECK(type_in_refusal(
            "PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange "
            "'e' in vhost '/'")
            .empty());
  CHECK(type_in_refusal("ACCESS_REFUSED - access to exchange 'e' in vhost '/' refused for user 'u'").empty());
  CHECK(type_in_refusal("PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e...").empty());
  CHECK(type_in_refusal("").empty());
}
