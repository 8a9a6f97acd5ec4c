#include "proto/itinerary.h"

#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;

namespace {

// The example of proto/README.md, "Carried itinerary".
constexpr std::string_view example =
    R"({"steps":[{"exchange":"orders-events","routingKey":"order.charge","name":"charge"}],)"
    R"("done":[{"exchange":"orders-events","routingKey":"order.validate","name":"validate",)"
    R"("completedAt":"2026-09-09T16:18:09Z"}]})";

Itinerary parsed(std::string_view json) {
  auto itinerary = Itinerary::parse(json);
  if (!itinerary) FAIL(itinerary.error());
  return itinerary.value();
}

std::string rewritten(std::string_view json) {
  return parsed(json).to_json();
}
bool is_refused(std::string_view json) {
  return !Itinerary::parse(json).ok();
}

Stop stop(std::string exchange, std::string routing_key, std::string name = {}) {
  Stop stop;
  stop.exchange = std::move(exchange);
  stop.routing_key = std::move(routing_key);
  stop.name = std::move(name);
  return stop;
}

}  // namespace

TEST_CASE("the example of the manual is read and written byte for byte", "[itinerary]") {
  const Itinerary itinerary = parsed(example);
  REQUIRE(itinerary.steps().size() == 1);
  CHECK(itinerary.current()->exchange == "orders-events");
  CHECK(itinerary.current()->routing_key == "order.charge");
  CHECK(itinerary.current()->name == "charge");
  REQUIRE(itinerary.done().size() == 1);
  CHECK(itinerary.done()[0].completed_at == "2026-09-09T16:18:09Z");
  CHECK(itinerary.to_json() == example);
}

TEST_CASE("an unnamed stop keeps its empty exchange and nothing else that is empty", "[itinerary]") {
  auto itinerary = Itinerary::start_of({stop("", "orders.new")});
  REQUIRE(itinerary.ok());
  CHECK(itinerary.value().to_json() == R"({"steps":[{"exchange":"","routingKey":"orders.new"}]})");
  CHECK(rewritten(R"({"steps":[{"exchange":"","routingKey":"orders.new"}]})") == itinerary.value().to_json());
}

TEST_CASE("an itinerary is walked to its end", "[itinerary]") {
  auto itinerary = Itinerary::start_of({stop("e", "a", "first"), stop("e", "b")});
  REQUIRE(itinerary.ok());
  itinerary.value().advance("2026-09-09T16:18:09Z");
  CHECK(itinerary.value().to_json() ==
        R"({"steps":[{"exchange":"e","routingKey":"b"}],)"
        R"("done":[{"exchange":"e","routingKey":"a","name":"first","completedAt":"2026-09-09T16:18:09Z"}]})");
  CHECK(!itinerary.value().is_finished());
  itinerary.value().advance("2026-09-09T16:18:10Z");
  CHECK(itinerary.value().is_finished());
  CHECK(itinerary.value().current() == nullptr);
  CHECK(itinerary.value().to_json() ==
        R"({"steps":[],)"
        R"("done":[{"exchange":"e","routingKey":"a","name":"first","completedAt":"2026-09-09T16:18:09Z"},)"
        R"({"exchange":"e","routingKey":"b","completedAt":"2026-09-09T16:18:10Z"}]})");
  itinerary.value().advance("2026-09-09T16:18:11Z");
  CHECK(itinerary.value().done().size() == 2);
}

TEST_CASE("white space and another order of keys are read, and written the one way", "[itinerary]") {
  CHECK(rewritten(" {\n \"done\" : [ ] , \"steps\":[ { \"name\" : \"\", \"routingKey\":\"k\" ,\"exchange\" "
                  ":\"e\" } ] }\r\n") == R"({"steps":[{"exchange":"e","routingKey":"k"}]})");
  CHECK(rewritten(R"({"steps":[]})") == R"({"steps":[]})");
  CHECK(rewritten(R"({"steps":[],"done":null})") == R"({"steps":[]})");
  CHECK(rewritten(R"({"steps":null})") == R"({"steps":[]})");
  CHECK(Itinerary::parse(R"({"steps":null})").value().is_finished());
}

TEST_CASE("a completion time that was read is kept as text", "[itinerary]") {
  const std::string python =
      R"({"steps":[],"done":[{"exchange":"e","routingKey":"k","completedAt":"2026-09-09T16:18:09.123456+00:00"}]})";
  CHECK(rewritten(python) == python);
  CHECK(rewritten(R"({"steps":[],"done":[{"exchange":"e","routingKey":"k","completedAt":1757434689}]})") ==
        R"({"steps":[],"done":[{"exchange":"e","routingKey":"k","completedAt":"1757434689"}]})");
}

TEST_CASE("fields that are not ours survive, in a stop and at the top", "[itinerary]") {
  Itinerary itinerary = parsed(
      R"({"version": 2,"steps":[{"retry":{"max" : 3,"note":"a \" , } b"},"exchange":"e","routingKey":"k","tags":[1, 2]}],)"
      R"("big":12345678901234567890123,"price":1.10,"\u00e9":null})");
  CHECK(itinerary.to_json() ==
        R"({"steps":[{"exchange":"e","routingKey":"k","retry":{"max":3,"note":"a \" , } b"},"tags":[1,2]}],)"
        R"("version":2,"big":12345678901234567890123,"price":1.10,"\u00e9":null})");
  itinerary.advance("2026-09-09T16:18:09Z");
  CHECK(itinerary.to_json() ==
        R"({"steps":[],"done":[{"exchange":"e","routingKey":"k","completedAt":"2026-09-09T16:18:09Z",)"
        R"("retry":{"max":3,"note":"a \" , } b"},"tags":[1,2]}],)"
        R"("version":2,"big":12345678901234567890123,"price":1.10,"\u00e9":null})");
  CHECK(rewritten(itinerary.to_json()) == itinerary.to_json());
}

TEST_CASE("of a key that is there twice the last counts", "[itinerary]") {
  CHECK(rewritten(R"({"steps":5,"steps":[{"exchange":"a","exchange":"b","routingKey":"k"}]})") ==
        R"({"steps":[{"exchange":"b","routingKey":"k"}]})");
  CHECK(rewritten(R"({"steps":[],"x":1,"x":2})") == R"({"steps":[],"x":1,"x":2})");
  // A key is what it decodes to.
  CHECK(rewritten(R"({"\u0073teps":[{"\u0065xchange":"e","routingKey":"k"}]})") ==
        R"({"steps":[{"exchange":"e","routingKey":"k"}]})");
}

TEST_CASE("text is decoded and encoded again", "[itinerary]") {
  const Itinerary itinerary =
      parsed("{\"steps\":[{\"exchange\":\"\\u00e9\\n\",\"routingKey\":\"\xC3\xA9\\\"\"}]}");
  CHECK(itinerary.current()->exchange == "\xC3\xA9\n");
  CHECK(itinerary.current()->routing_key == "\xC3\xA9\"");
  CHECK(itinerary.to_json() ==
        "{\"steps\":[{\"exchange\":\"\xC3\xA9\\n\",\"routingKey\":\"\xC3\xA9\\\"\"}]}");
}

TEST_CASE("a missing or null text is empty, a number its digits, a structure an error", "[itinerary]") {
  CHECK(rewritten(R"({"steps":[{}]})") == R"({"steps":[{"exchange":"","routingKey":""}]})");
  CHECK(rewritten(R"({"steps":[{"exchange":null,"routingKey":5,"name":null}]})") ==
        R"({"steps":[{"exchange":"","routingKey":"5"}]})");
  CHECK(is_refused(R"({"steps":[{"exchange":{"a":1},"routingKey":"k"}]})"));
  CHECK(is_refused(R"({"steps":[{"exchange":"e","routingKey":["k"]}]})"));
}

TEST_CASE("what is no itinerary is refused", "[itinerary]") {
  for (const char* json : {"",
                           " ",
                           "steps",
                           "{",
                           "{}}",
                           "[]",
                           "5",
                           "null",
                           "\"steps\"",
                           "{}",
                           R"({"steps":{}})",
                           R"({"steps":"a,b"})",
                           R"({"steps":["a"]})",
                           R"({"steps":[null]})",
                           R"({"steps":[[]]})",
                           R"({"steps":[],"done":{}})",
                           R"({"steps":[],"done":[1]})",
                           R"({"steps":[],})",
                           R"({'steps':[]})",
                           R"({"steps":[]} x)",
                           R"({"steps":[{"exchange":"\ud800","routingKey":"k"}]})",
                           "\xEF\xBB\xBF{\"steps\":[]}",
                           "{\"steps\":[]}\x01",
                           "{\"steps\":[],\"x\":1e999}",
                           "/**/{\"steps\":[]}"}) {
    INFO(json);
    CHECK(is_refused(json));
  }
  CHECK(is_refused("{\"steps\":[{\"exchange\":\"\xFF\",\"routingKey\":\"k\"}]}"));
  CHECK(is_refused(std::string_view("{\"steps\":[]}\0", 13)));
  CHECK(Itinerary::parse("nonsense").error().find("acemq-routing-slip") != std::string::npos);
}

TEST_CASE("JSON cut at any length is refused", "[itinerary]") {
  for (size_t size = 0; size < example.size(); ++size) CHECK(is_refused(example.substr(0, size)));
}

TEST_CASE("JSON that is too long or too deep is refused, however deep", "[itinerary]") {
  const auto padded = [](size_t bytes) {
    std::string json = R"({"steps":[]})";
    return json.insert(1, bytes - json.size(), ' ');
  };
  CHECK(!is_refused(padded(itinerary_json_bytes_max)));
  CHECK(is_refused(padded(itinerary_json_bytes_max + 1)));

  const auto nested = [](size_t depth) {
    return R"({"steps":[],"x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(!is_refused(nested(15)));  // with the root, 16
  CHECK(is_refused(nested(16)));
  CHECK(is_refused(nested(30000)));
  CHECK(is_refused(std::string(60000, '[')));
  // Brackets in a text are not depth.
  CHECK(!is_refused(R"({"steps":[],"x":"[[[[[[[[[[[[[[[[[[[[[[[[[\"{{{{{{{{{{{{{"})"));
}

TEST_CASE("an itinerary that may not start says why", "[itinerary]") {
  CHECK(!Itinerary::start_of({}).ok());
  CHECK(Itinerary::start_of(std::vector<Stop>(64, stop("e", "k"))).ok());
  const auto many = Itinerary::start_of(std::vector<Stop>(65, stop("e", "k")));
  REQUIRE(!many.ok());
  CHECK(many.error().find("64") != std::string::npos);

  // What counts is the JSON at its longest: with every stop done.
  const auto with_name_of = [](size_t bytes) {
    return Itinerary::start_of({stop("e", "k", std::string(bytes, 'n'))});
  };
  auto probe = with_name_of(1);
  REQUIRE(probe.ok());
  probe.value().advance("2026-09-09T16:18:09Z");
  const size_t overhead = probe.value().to_json().size() - 1;
  CHECK(with_name_of(itinerary_start_bytes_max - overhead).ok());
  const auto large = with_name_of(itinerary_start_bytes_max - overhead + 1);
  REQUIRE(!large.ok());
  CHECK(large.error().find("32768") != std::string::npos);
}

TEST_CASE("a configured name that is not UTF-8 does not break the writing", "[itinerary]") {
  auto itinerary = Itinerary::start_of({stop("\xFF", "k")});
  REQUIRE(itinerary.ok());
  CHECK(itinerary.value().to_json() == "{\"steps\":[{\"exchange\":\"\xEF\xBF\xBD\",\"routingKey\":\"k\"}]}");
}

TEST_CASE("the header is found in a table", "[itinerary]") {
  CHECK(!itinerary_text({}));
  Buffer fields;
  put_field(fields, "a", int64_t{1});
  put_field(fields, itinerary_header, example);
  CHECK(itinerary_text(fields) == example);
  // A field that is no text is there, and is no JSON.
  Buffer number;
  put_field(number, itinerary_header, int64_t{1});
  CHECK(itinerary_text(number) == "");
}

TEST_CASE("times are UTC, in seconds, with Z", "[itinerary]") {
  CHECK(utc_seconds(0) == "1970-01-01T00:00:00Z");
  CHECK(utc_seconds(1788970689) == "2026-09-09T16:18:09Z");
  CHECK(utc_seconds(951782400) == "2000-02-29T00:00:00Z");
  CHECK(!utc_seconds(INT64_MAX).empty());
}

TEST_CASE("a NUL ends no JSON text: what stands behind it counts, and is not JSON", "[itinerary]") {
  using namespace std::string_view_literals;
  CHECK_FALSE(bellhop::proto::Itinerary::parse("{\"steps\":[]}\0{\"steps\":[{}]}"sv).ok());
  CHECK_FALSE(bellhop::proto::Itinerary::parse("{\"steps\":[]}\0"sv).ok());
  CHECK(bellhop::proto::Itinerary::parse("{\"steps\":[]}"sv).ok());
}
