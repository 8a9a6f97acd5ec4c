#include "daemon/ops/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

std::string logged(std::unique_ptr<spdlog::formatter> formatter, std::string_view message) {
  std::ostringstream out;
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  logger.set_formatter(std::move(formatter));
  logger.warn("{}", message);
  return out.str();
}

}  // namespace

TEST_CASE("a text line is time, level and message", "[log]") {
  const std::string line = logged(text_log_formatter(), "session opened peer=\"unix uid=0\"");
  REQUIRE(line.size() > 25);
  REQUIRE(line[10] == 'T');
  REQUIRE(line.substr(23) == "Z warn session opened peer=\"unix uid=0\"\n");
}

TEST_CASE("a message cannot begin a second line", "[log]") {
  const std::string text = logged(text_log_formatter(), "peer said=\"x\n2026 error forged\r\x1b[2J\"");
  REQUIRE(text.find("peer said=\"x\\n2026 error forged\\u000d\\u001b[2J\"\n") != std::string::npos);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("control characters of two bytes move no cursor either", "[log]") {
  // CSI, and no-break space, which is none.
  const std::string text = logged(text_log_formatter(),
                                  "x\xC2\x9B"
                                  "2Jx\xC2\xA0x");
  REQUIRE(text.find("x\\u009b2Jx\xC2\xA0x\n") != std::string::npos);
}

TEST_CASE("a JSON line holds any message", "[log]") {
  const auto round_trip = [](std::string_view message) {
    const std::string line = logged(json_log_formatter("orders \"api\""), message);
    REQUIRE(std::count(line.begin(), line.end(), '\n') == 1);
    const nlohmann::json parsed = nlohmann::json::parse(line);
    REQUIRE(parsed["level"] == "warn");
    REQUIRE(parsed["service"] == "orders \"api\"");
    REQUIRE(parsed["time"].get<std::string>().size() == 24);
    return parsed["message"].get<std::string>();
  };
  for (const std::string message :
       {"", "plain", "quote \" backslash \\ slash /", "line\nline\ttab", "caf\xC3\xA9 \xF0\x9F\x98\x80"}) {
    REQUIRE(round_trip(message) == message);
  }
  REQUIRE(round_trip(std::string("nul \0 del \x7F", 11)) == std::string("nul \0 del \x7F", 11));
  // No UTF-8: a stray byte, one cut off, an overlong slash, a surrogate.
  REQUIRE(round_trip("\xFF") == "\xEF\xBF\xBD");
  REQUIRE(round_trip("x\xC3") == "x\xEF\xBF\xBD");
  REQUIRE(round_trip("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  REQUIRE(round_trip("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("the configured level decides what is logged", "[log]") {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  config::Config config;
  config.log_level = config::LogLevel::warn;
  config.log_json = true;
  set_up_log(config);
  REQUIRE_FALSE(spdlog::should_log(spdlog::level::info));
  REQUIRE(spdlog::should_log(spdlog::level::warn));
  spdlog::set_default_logger(before);
}
