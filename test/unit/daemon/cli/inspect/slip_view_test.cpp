#include "daemon/cli/inspect/slip_view.h"

#include "proto/table.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

std::string words(std::string_view route, int64_t position) {
  Buffer fields;
  proto::put_field(fields, "x-acemq-route", route);
  proto::put_field(fields, "x-acemq-route-position", position);
  proto::put_field(fields, "x-acemq-route-id", "run");
  return in_words(slip_of(fields).value());
}

std::string itinerary(std::string_view json) {
  Buffer fields;
  proto::put_field(fields, "acemq-routing-slip", json);
  return in_words(slip_of(fields).value());
}

}  // namespace

TEST_CASE("the current step of a slip is in brackets", "[slip_view]") {
  CHECK(words("validate,reserve,dispatch", 0) == "[validate] -> reserve -> dispatch (step 1 of 3, run run)");
  CHECK(words("validate,reserve,dispatch", 2) == "validate -> reserve -> [dispatch] (step 3 of 3, run run)");
  CHECK(words("validate,reserve", 2) == "validate -> reserve (finished, run run)");
  CHECK(words("a", 99) == "a (finished, run run)");
  CHECK_FALSE(slip_of({}));
}

TEST_CASE("an itinerary shows what is done before the stop that it is at", "[slip_view]") {
  CHECK(
      itinerary(
          R"({"steps":[{"exchange":"orders","routingKey":"order.charge"}],"done":[{"exchange":"e","routingKey":"k","name":"validate"}]})") ==
      "validate -> [orders/order.charge] (step 2 of 2)");
  CHECK(itinerary(R"({"steps":[{"exchange":"","routingKey":"q"}]})") == "[q] (step 1 of 1)");
  CHECK(itinerary(R"({"steps":null,"done":[{"exchange":"e","routingKey":"k"}]})") == "e/k (finished)");
  CHECK(itinerary("{").starts_with("UNREADABLE: "));
}
