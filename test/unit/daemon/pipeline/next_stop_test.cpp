#include "daemon/pipeline/next_stop.h"

#include "config/load.h"
#include "proto/itinerary.h"
#include "proto/routing_slip.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using bellhop::test::to_hex;

namespace {

constexpr std::string_view fresh = "11111111-2222-4333-8444-555555555555";
constexpr int64_t noon_s = 1788970689;  // 2026-09-09T16:18:09Z

const config::RoutingTable& routing() {
  static const config::RoutingTable table = [] {
    config::Loaded loaded = config::load_text(R"(
broker: { url: amqp://localhost }
pipelines:
  orders: { steps: [validate, reserve, dispatch] }
  returns: { steps: [validate, refund] }
slip: { allowed_exchanges: [orders-events, ""] }
)",
                                              "test");
    REQUIRE(loaded.errors == std::vector<std::string>{});
    return config::RoutingTable(std::make_shared<const config::Config>(std::move(loaded.config)));
  }();
  return table;
}

Buffer declared(std::string_view route, int64_t position, std::string_view run_id = "run") {
  Buffer fields;
  proto::put_field(fields, proto::slip_route_header, route);
  proto::put_field(fields, proto::slip_position_header, position);
  if (!run_id.empty()) proto::put_field(fields, proto::slip_id_header, run_id);
  return fields;
}

Buffer itinerary(std::string_view json) {
  Buffer fields;
  proto::put_field(fields, proto::itinerary_header, json);
  return fields;
}

std::string to_text(const Destination& to) {
  return to.exchange + "|" + to.routing_key;
}

// "exchange|key", "nowhere", or the error's text.
std::string current(const Buffer& fields, const config::Pipeline* preferred = nullptr) {
  auto stop = current_stop(fields, preferred, routing());
  if (!stop) return stop.error();
  return stop.value() ? to_text(*stop.value()) : "nowhere";
}

std::string advanced(const Buffer& fields, std::string_view key = {},
                     const config::PipelineStep& input = {}) {
  auto next = next_stop(fields, key, input, routing(), fresh, noon_s);
  if (!next) return next.error();
  return next.value().is_finished ? "finished" : to_text(next.value().to);
}

std::string fields_after(const Buffer& fields) {
  return to_hex(next_stop(fields, {}, {}, routing(), fresh, noon_s).value().fields);
}

}  // namespace

TEST_CASE("a message that carries a slip goes to the step it is at", "[next_stop]") {
  CHECK(current(declared("validate,reserve,dispatch", 1)) == "orders|reserve");
  CHECK(current(declared("refund", 0)) == "returns|refund");
  CHECK(current(itinerary(R"({"steps":[{"exchange":"orders-events","routingKey":"k"}]})")) ==
        "orders-events|k");
  CHECK(current(itinerary(R"({"steps":[{"exchange":"","routingKey":"q"}]})")) == "|q");
}

TEST_CASE("no slip and a finished one lead nowhere", "[next_stop]") {
  CHECK(current({}) == "nowhere");
  CHECK(current(declared(" , ", 0)) == "nowhere");
  CHECK(current(declared("validate", 1)) == "nowhere");
  CHECK(current(itinerary(R"({"steps":[]})")) == "nowhere");
}

TEST_CASE("a step of two pipelines is the preferred one's, else an error", "[next_stop]") {
  const config::Pipeline* const returns = routing().pipeline("returns");
  CHECK(current(declared("validate,refund", 0), returns) == "returns|validate");
  CHECK(current(declared("validate,reserve", 1), returns) == "orders|reserve");
  CHECK(current(declared("validate", 0)) ==
        "routing slip: no pipeline, or more than one, has the step 'validate': name the pipeline in the "
        "routing key");
}

TEST_CASE("advancing a declared route writes the three headers of the next position", "[next_stop]") {
  CHECK(advanced(declared("validate,reserve,dispatch", 0)) == "orders|reserve");
  CHECK(fields_after(declared(" validate, reserve", 0)) == to_hex(declared("validate,reserve", 1)));
  CHECK(fields_after(declared("validate,reserve", 0, "")) == to_hex(declared("validate,reserve", 1, fresh)));
  CHECK(advanced(declared("validate,reserve", 1)) == "finished");
  CHECK(advanced(declared("validate,reserve", 2)) == "finished");
}

TEST_CASE("which pipeline: the routing key's, else the input's, else the only one with the step",
          "[next_stop]") {
  const config::Pipeline* const returns = routing().pipeline("returns");
  const Buffer slip = declared("refund,validate", 0);
  CHECK(advanced(slip, "orders") == "orders|validate");
  CHECK(advanced(slip, "orders", {returns}) == "orders|validate");
  CHECK(advanced(slip, "no.pipeline", {returns}) == "returns|validate");
  CHECK(advanced(slip, {}, {returns}) == "returns|validate");
  CHECK(advanced(slip).starts_with("routing slip: no pipeline, or more than one, has the step 'validate'"));
}

TEST_CASE("a message finishes along the route that it was given, whatever steps the configuration has now",
          "[next_stop]") {
  const config::Pipeline* const returns = routing().pipeline("returns");
  CHECK(advanced(declared("validate,reserve", 0), "returns") == "returns|reserve");
  CHECK(advanced(declared("validate,check_stock,refund", 0), {}, {returns}) == "returns|check_stock");
  CHECK(advanced(declared("old,gone,refund", 0), "returns") == "returns|gone");
  CHECK(advanced(declared("old,gone,refund", 0)).starts_with("routing slip: no pipeline"));
  // A start is no hop, which would be returned: a step that nobody knows is refused.
  CHECK(current(declared("gone,refund", 0), returns).starts_with("routing slip: no pipeline"));
  CHECK(current(declared("gone,refund", 0)).starts_with("routing slip: no pipeline"));
}

TEST_CASE("a step whose queue's name would be too long leads nowhere", "[next_stop]") {
  const config::Pipeline* const returns = routing().pipeline("returns");
  const std::string fits(247, 's'), too_long(248, 's');
  CHECK(advanced(declared("a," + fits, 0), {}, {returns}) == "returns|" + fits);
  CHECK(
      advanced(declared("a," + too_long, 0), {}, {returns}) ==
      "routing slip: a step of pipeline 'returns' has too long a name: its queue's would have more than 255 "
      "bytes");
}

TEST_CASE("without a slip a message stands at the step whose queue it came from", "[next_stop]") {
  const config::PipelineStep reserve = routing().step_of_queue("orders.reserve");
  REQUIRE(reserve.step != nullptr);
  CHECK(advanced({}, {}, reserve) == "orders|dispatch");
  auto next = next_stop({}, {}, reserve, routing(), fresh, noon_s);
  CHECK(to_hex(next.value().fields) == to_hex(declared("validate,reserve,dispatch", 2, fresh)));
  CHECK(next.value().run_id == fresh);
  CHECK(advanced({}, {}, routing().step_of_queue("orders.dispatch")) == "finished");
  CHECK(advanced({}, {}, routing().step_of_queue("orders.gone")).find("has none") != std::string::npos);
  // A slip that is there counts.
  CHECK(advanced(declared("validate,reserve,dispatch", 0), {}, reserve) == "orders|reserve");
}

TEST_CASE("where the pipeline has no exchange a step is sent to by its queue", "[next_stop]") {
  const Destination step{"orders", "reserve", "orders"};
  CHECK(to_text(with_exchange(step, {})) == "orders|reserve");
  CHECK(to_text(with_exchange(step, {"returns"})) == "orders|reserve");
  CHECK(to_text(with_exchange(step, {"orders"})) == "|orders.reserve");
  CHECK(to_text(with_exchange({"orders", "k"}, {"orders"})) == "orders|k");  // an itinerary's stop
}

TEST_CASE("a hop too many is known as one", "[next_stop]") {
  const auto is_one_too_many = [](const Buffer& fields) {
    return next_stop(fields, {}, {}, routing(), fresh, noon_s).value().was_finished;
  };
  CHECK(!is_one_too_many(declared("validate", 0)));
  CHECK(is_one_too_many(declared("validate", 1)));
  CHECK(is_one_too_many(itinerary(R"({"steps":null})")));
}

TEST_CASE("advancing an itinerary moves its first stop to done", "[next_stop]") {
  const Buffer before =
      itinerary(R"({"steps":[{"exchange":"orders-events","routingKey":"order.validate","name":"validate"},)"
                R"({"exchange":"orders-events","routingKey":"order.charge","name":"charge"}],"extra":[1]})");
  CHECK(advanced(before) == "orders-events|order.charge");
  CHECK(fields_after(before) ==
        to_hex(itinerary(
            R"({"steps":[{"exchange":"orders-events","routingKey":"order.charge","name":"charge"}],)"
            R"("done":[{"exchange":"orders-events","routingKey":"order.validate","name":"validate",)"
            R"("completedAt":"2026-09-09T16:18:09Z"}],"extra":[1]})")));
  CHECK(advanced(itinerary(R"({"steps":[{"exchange":"x","routingKey":"k"}]})")) == "finished");
  CHECK(advanced(itinerary(R"({"steps":[]})")) == "finished");
}

TEST_CASE("of both forms the itinerary counts, and only it is rewritten", "[next_stop]") {
  Buffer both = declared("validate,reserve", 0);
  put(both, itinerary(R"({"steps":[{"exchange":"a","routingKey":"b"},{"exchange":"","routingKey":"q"}]})"));
  CHECK(current(both) == "routing slip: exchange 'a' is not among slip.allowed_exchanges");
  CHECK(advanced(both) == "|q");
  CHECK(fields_after(both).starts_with(to_hex(itinerary("{")).substr(0, 30)));
}

TEST_CASE("a slip that cannot be read or may not be followed is an error", "[next_stop]") {
  CHECK(advanced({}) ==
        "routing slip: the message has none, and bellhop-ack names no delivery from a step's queue; pass on "
        "the "
        "headers of the input");
  CHECK(advanced(itinerary("nonsense")).starts_with("header acemq-routing-slip: not JSON"));
  const std::string forbidden =
      R"({"steps":[{"exchange":"a","routingKey":"b"},{"exchange":"amq.fanout","routingKey":"k"}]})";
  CHECK(advanced(itinerary(forbidden)) ==
        "routing slip: exchange 'amq.fanout' is not among slip.allowed_exchanges");
  const std::string key(256, 'k');
  CHECK(current(itinerary(R"({"steps":[{"exchange":"","routingKey":")" + key + R"("}]})")) ==
        "routing slip: an exchange and a routing key have at most 255 bytes");
}

TEST_CASE("a hop says whose result it is, as far as the configuration knows", "[next_stop]") {
  const auto from = [](const Buffer& fields, std::string_view key = {}) {
    auto next = next_stop(fields, key, {}, routing(), fresh, noon_s);
    if (!next) return next.error();
    const NextStop& stop = next.value();
    return (stop.pipeline != nullptr ? stop.pipeline->name : "-") + "." + stop.result_of;
  };
  CHECK(from(declared("validate,reserve,dispatch", 0)) == "orders.validate");
  CHECK(from(declared("validate,reserve,dispatch", 2)) == "orders.dispatch");
  CHECK(from(declared("validate", 0), "returns") == "returns.validate");
  CHECK(from(declared("validate", 0)) == "-.validate");
  CHECK(from(declared("validate", 1)) == "-.");
}
