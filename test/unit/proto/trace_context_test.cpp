#include "proto/trace_context.h"

#include <string>

#include "proto/table.h"
#include "test/support/catch.h"

using namespace bellhop;
using namespace bellhop::proto;

namespace {

const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string good = "00-" + trace + "-00f067aa0ba902b7-01";

std::string with(size_t at, char c) {
  std::string out = good;
  out[at] = c;
  return out;
}

}  // namespace

TEST_CASE("a well-formed traceparent has a trace id", "[trace]") {
  REQUIRE(trace_id_of(good) == trace);
  // What a later version adds is behind one more dash.
  REQUIRE(trace_id_of("cc" + good.substr(2) + "-what-else") == trace);
  REQUIRE(trace_id_of("cc" + good.substr(2)) == trace);
}

TEST_CASE("a malformed traceparent has none", "[trace]") {
  for (size_t size = 0; size < good.size(); ++size) CHECK(trace_id_of(good.substr(0, size)).empty());
  for (size_t at = 0; at < good.size(); ++at) {
    CHECK(trace_id_of(with(at, 'g')).empty());
    CHECK(trace_id_of(with(at, 'A')).empty());
    CHECK(trace_id_of(with(at, '\n')).empty());
  }
  CHECK(trace_id_of(good + "-00").empty());
  CHECK(trace_id_of("cc" + good.substr(2) + "x").empty());
  CHECK(trace_id_of("ff" + good.substr(2)).empty());
  CHECK(trace_id_of("00-" + std::string(32, '0') + good.substr(35)).empty());
  CHECK(trace_id_of("00-" + trace + "-" + std::string(16, '0') + "-01").empty());
}

TEST_CASE("the trace id of a message is in its header of that name, a string", "[trace]") {
  Buffer fields;
  put_field(fields, "tracestate", std::string_view("a=b"));
  REQUIRE(trace_id_in(fields).empty());
  put_field(fields, "traceparent", std::string_view(good));
  REQUIRE(trace_id_in(fields) == trace);
  Buffer number;
  put_field(number, "traceparent", int64_t{1});
  REQUIRE(trace_id_in(number).empty());
  REQUIRE(trace_id_in({}).empty());
}
