#include "daemon/pipeline/return_address.h"

#include "proto/table.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

std::shared_ptr<const config::Config> configuration() {
  auto config = std::make_shared<config::Config>();
  config->pipelines.push_back({"fulfilment", {"validate", "reserve"}, false, true});
  config->slip_allowed_exchanges = {"fulfilment", "orders"};
  return config;
}

Buffer slip(std::string_view route, int64_t position) {
  Buffer out;
  proto::put_field(out, "x-acemq-route", route);
  proto::put_field(out, "x-acemq-route-position", position);
  return out;
}

// x-death with one entry for each queue, the newest first.
Buffer died_in(const std::vector<std::string_view>& queues) {
  Buffer entries;
  for (const std::string_view queue : queues) {
    Buffer entry;
    proto::put_field(entry, "reason", "rejected");
    proto::put_field(entry, "queue", queue);
    put_u8(entries, 'F');
    put_longstr(entries, as_text(entry));
  }
  Buffer out;
  put_shortstr(out, "x-death");
  put_u8(out, 'A');
  put_longstr(out, as_text(entries));
  return out;
}

Buffer parked() {
  Buffer out;
  proto::put_field(out, "x-acemq-error", "why");
  return out;
}

Buffer both(Buffer a, const Buffer& b) {
  put(a, b);
  return a;
}

std::string address(const Buffer& fields, std::string_view queue) {
  const config::RoutingTable routing(configuration());
  const auto to = return_address(fields, queue, routing);
  return to ? to.value().exchange + "/" + to.value().routing_key : "?";
}

}  // namespace

TEST_CASE("a parked queue and a dead-letter queue belong to another one", "[return_address]") {
  CHECK(queue_beside("orders.parked") == "orders");
  CHECK(queue_beside("orders.dlq") == "orders");
  CHECK(queue_beside("orders") == "");
  CHECK(queue_beside("orders.parked.old") == "");
  CHECK(queue_beside("bellhop.parked") == "");
}

TEST_CASE("without anything else the queue's name says where a message came from", "[return_address]") {
  CHECK(address({}, "orders.parked") == "/orders");
  CHECK(address({}, "orders.dlq") == "/orders");
  CHECK(address({}, "dead-letters") == "?");
  CHECK(address({}, "bellhop.parked") == "?");
}

TEST_CASE("a slip says at which step the message is", "[return_address]") {
  CHECK(address(slip("validate,reserve", 1), "fulfilment.reserve.parked") == "fulfilment/reserve");
  CHECK(address(slip("validate,reserve", 1), "dead-letters") == "fulfilment/reserve");
  CHECK(address(both(slip("validate,reserve", 0), died_in({"elsewhere"})), "x.dlq") == "fulfilment/validate");
}

TEST_CASE("a slip that is at its end, or leads nowhere here, leaves it to the rest", "[return_address]") {
  CHECK(address(slip("validate,reserve", 2), "fulfilment.reserve.dlq") == "/fulfilment.reserve");
  CHECK(address(slip("print", 0), "reports.parked") == "/reports");
  CHECK(address(slip("print", 0), "dead-letters") == "?");
  Buffer unreadable;
  proto::put_field(unreadable, "acemq-routing-slip", "{");
  CHECK(address(unreadable, "reports.parked") == "/reports");
}

TEST_CASE("an itinerary goes to its stop, and only where the configuration allows", "[return_address]") {
  Buffer allowed, forbidden;
  proto::put_field(allowed, "acemq-routing-slip",
                   R"({"steps":[{"exchange":"orders","routingKey":"order.charge"}]})");
  proto::put_field(forbidden, "acemq-routing-slip", R"({"steps":[{"exchange":"secret","routingKey":"k"}]})");
  CHECK(address(allowed, "reports.parked") == "orders/order.charge");
  CHECK(address(forbidden, "reports.parked") == "/reports");
}

TEST_CASE("x-death names the queue in which the message died last", "[return_address]") {
  CHECK(address(died_in({"orders"}), "dead-letters") == "/orders");
  CHECK(address(died_in({"dead-letters", "orders"}), "dead-letters") == "/orders");
  CHECK(address(died_in({"orders.retry.30s", "orders"}), "orders.dlq") == "/orders");
  CHECK(address(died_in({"invoices", "orders"}), "common.dlq") == "/invoices");
}

TEST_CASE("what was parked beside its queue goes back to it, whatever it died of before",
          "[return_address]") {
  CHECK(address(both(parked(), died_in({"orders.retry.30s"})), "orders.parked") == "/orders");
  CHECK(address(both(parked(), died_in({"orders"})), "bellhop.parked") == "/orders");
}
