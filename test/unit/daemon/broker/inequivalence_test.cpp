#include "daemon/broker/inequivalence.h"

#include "test/support/catch.h"

using namespace bellhop;

namespace {

const std::string about_queue = " for queue 'orders.ship' in vhost '/': ";

Declaration step_queue(bool dead_letter = true) {
  config::Pipeline pipeline{"orders", {"ship"}, true, dead_letter};
  for (Declaration& each : declarations_of(pipeline)) {
    if (each.kind == Declaration::Kind::queue && each.name == "orders.ship") return each;
  }
  return {};
}

Difference parsed(const std::string& arg, const std::string& values) {
  const auto found =
      parse_difference("PRECONDITION_FAILED - inequivalent arg '" + arg + "'" + about_queue + values);
  REQUIRE(found);
  return *found;
}

const std::string none_instead_of_dlx =
    "received the value 'acemq.dlx' of type 'longstr' but current is none";

}  // namespace

// The texts are RabbitMQ 3.10's and 4.0's.
TEST_CASE("a refusal names what differs and the value that is there", "[inequivalence]") {
  const Difference none = parsed("x-dead-letter-exchange", none_instead_of_dlx);
  CHECK((none.what == "x-dead-letter-exchange" && none.is_none && none.is_known));

  const Difference same_type = parsed("x-dead-letter-exchange", "received 'acemq.dlx' but current is 'it's'");
  CHECK((same_type.current == "it's" && same_type.type.empty() && same_type.is_known));

  const Difference other_type =
      parsed("x-message-ttl", "received none but current is the value '5000' of type 'signedint'");
  CHECK((other_type.current == "5000" && other_type.type == "signedint" && other_type.is_known));
}

TEST_CASE("a text that was cut names what differs all the same", "[inequivalence]") {
  for (const char* values :
       {"received the value 'acemq.dlx' of type 'longstr' but current is the valu...",
        "received the value 'acemq.dlx' of type 'longstr' but curr...", "received 'a' but current is 'b...",
        "received 'a' but current is the value 'b' of typ...", "received 'a' but current is '", "..."}) {
    const Difference difference = parsed("x-dead-letter-exchange", values);
    CHECK(difference.what == "x-dead-letter-exchange");
    CHECK_FALSE(difference.is_known);
    Declaration item = step_queue();
    CHECK_FALSE(take_over(item, difference));
  }
}

TEST_CASE("a refusal for another reason is no difference", "[inequivalence]") {
  for (const char* text :
       {"", "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'", "inequivalent arg '",
        "inequivalent arg 'x' of", "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'q'"})
    CHECK_FALSE(parse_difference(text));
}

TEST_CASE("a difference that is taken over makes the declaration what is there", "[inequivalence]") {
  Declaration item = step_queue();
  CHECK(take_over(item, parsed("x-dead-letter-exchange", none_instead_of_dlx)));
  CHECK(take_over(item, parsed("x-queue-type", "received 'quorum' but current is 'classic'")));
  CHECK(take_over(item,
                  parsed("x-max-length", "received none but current is the value '3' of type 'signedint'")));
  CHECK(take_over(item, parsed("x-expires", "received none but current is the value '3' of type 'long'")));
  CHECK(take_over(item, parsed("x-single-active-consumer",
                               "received none but current is the value 'true' of type 'bool'")));
  CHECK(take_over(item, parsed("durable", "received 'true' but current is 'false'")));
  CHECK(take_over(item, parsed("auto_delete", "received 'false' but current is 'true'")));
  CHECK(item.argument("x-dead-letter-exchange") == nullptr);
  CHECK(*item.argument("x-queue-type") == ArgumentValue{std::string("classic")});
  CHECK(*item.argument("x-max-length") == ArgumentValue{int32_t{3}});
  CHECK(*item.argument("x-expires") == ArgumentValue{int64_t{3}});
  CHECK(*item.argument("x-single-active-consumer") == ArgumentValue{true});
  CHECK_FALSE(item.durable);
  CHECK(item.auto_delete);

  CHECK_FALSE(take_over(item, parsed("x-odd", "received none but current is the value '' of type 'array'")));
  CHECK_FALSE(
      take_over(item, parsed("x-odd", "received none but current is the value 'x' of type 'signedint'")));
}

TEST_CASE("the advice for a queue without dead-lettering is a policy", "[inequivalence]") {
  const std::vector<Difference> found{
      parsed("x-dead-letter-exchange", none_instead_of_dlx),
      parsed("x-dead-letter-routing-key",
             "received the value 'orders.ship.dlq' of type 'longstr' but current is none")};
  CHECK(describe(found, step_queue()) ==
        "no x-dead-letter-exchange (bellhop declares 'acemq.dlx'), no x-dead-letter-routing-key (bellhop "
        "declares 'orders.ship.dlq')");
  CHECK(dead_letter_policy(found, step_queue(), "it's") ==
        R"(rabbitmqctl set_policy -p 'it'\''s' --apply-to queues 'dead-letter orders.ship' )"
        R"('^orders\.ship$' )"
        R"('{"dead-letter-exchange":"acemq.dlx","dead-letter-routing-key":"orders.ship.dlq"}')");
  CHECK(advice(found, step_queue(), "/").find("rabbitmqctl set_policy -p '/'") != std::string::npos);
}

TEST_CASE("there is no policy where it would not help", "[inequivalence]") {
  SECTION("the queue's own argument wins") {
    const std::vector<Difference> found{
        parsed("x-dead-letter-exchange", "received 'acemq.dlx' but current is 'mine'")};
    CHECK(dead_letter_policy(found, step_queue(), "/").empty());
    CHECK(advice(found, step_queue(), "/").find("win over any policy") != std::string::npos);
  }
  SECTION("only the queue's type differs") {
    const std::vector<Difference> found{parsed("x-queue-type", "received 'quorum' but current is 'classic'")};
    CHECK(advice(found, step_queue(), "/").empty());
  }
  SECTION("no dead-lettering is asked for") {
    const std::vector<Difference> found{
        parsed("x-dead-letter-exchange",
               "received none but current is the value 'acemq.dlx' of type 'longstr'"),
        parsed("x-dead-letter-routing-key",
               "received none but current is the value 'orders.ship.dlq' of type 'longstr'")};
    CHECK(dead_letter_policy(found, step_queue(false), "/").empty());
    CHECK(advice(found, step_queue(false), "/") ==
          "; the pipeline's `dead_letter: true` declares it like this");
    // Its half, or another place for dead letters, is nothing that bellhop would declare.
    CHECK(advice({found[0]}, step_queue(false), "/").empty());
    CHECK(advice({parsed("x-dead-letter-exchange",
                         "received none but current is the value 'mine' of type 'longstr'"),
                  found[1]},
                 step_queue(false), "/")
              .empty());
    CHECK(advice({parsed("x-dead-letter-exchange", "received none but current is the val"), found[1]},
                 step_queue(false), "/")
              .empty());
  }
}

TEST_CASE("an exchange that spreads messages is told apart from one that does not", "[inequivalence]") {
  const Declaration exchange = declarations_of(config::Pipeline{"orders", {"ship"}, true})[0];
  CHECK(advice({parsed("type", "received 'direct' but current is 'topic'")}, exchange, "/").empty());
  CHECK(advice({parsed("type", "received 'direct' but current is 'fanout'")}, exchange, "/")
            .find("other steps") != std::string::npos);
}
