#include "config/retention_warnings.h"

#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

std::vector<std::string> warnings_of(const std::string& claims, const std::string& pipelines,
                                     const std::string& rest = {}) {
  const Loaded loaded = load_text(
      "broker: { url: amqp://localhost }\n"
      "stores: { claims: { type: filesystem, path: /x" +
          claims + " }, other: { type: filesystem, path: /y, retention: 90d } }\n" +
          "claim_check: { store: claims }\n" + pipelines + "\n" + rest,
      "f");
  for (const std::string& error : loaded.errors) FAIL(error);
  return retention_warnings(loaded.config);
}

const std::string declared = "pipelines: { p: { steps: [a], declare: true } }";

}  // namespace

TEST_CASE("queues without a time limit and a store that forgets are worth a warning", "[config]") {
  const auto warnings = warnings_of(", retention: 30d", declared);
  REQUIRE(warnings.size() == 1);
  CHECK(
      warnings[0].starts_with("the queues of pipeline 'p' hold messages without a time limit, and store "
                              "'claims' removes their payloads after 30d: "));
}

TEST_CASE("each store that a pipeline's payloads can be in is named", "[config]") {
  const auto warnings = warnings_of(
      ", retention: 30d", declared,
      "routes: [{ name: r, match: { exchange: e }, slip: { pipeline: p }, claim_check: { store: other } }]");
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[1].find("store 'other' removes their payloads after 90d") != std::string::npos);
}

TEST_CASE("what keeps for ever, or was not declared by bellhop, needs no warning", "[config]") {
  CHECK(warnings_of("", declared).empty());
  CHECK(warnings_of(", retention: 30d", "pipelines: { p: { steps: [a] } }").empty());
  CHECK(warnings_of(", retention: 30d", "").empty());
}
