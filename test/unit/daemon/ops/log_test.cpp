#include "daemon/ops/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ops/log_line.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

// What is written of it, with the process's own logger.
std::string logged(std::unique_ptr<spdlog::formatter> formatter, std::string_view message,
                   const LogFields& fields = {}) {
  std::ostringstream out;
  auto logger =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  logger->set_formatter(std::move(formatter));
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(logger);
  log_warn(message, fields);
  spdlog::set_default_logger(before);
  return out.str();
}

std::string as_text(const LogFields& fields) {
  const std::string line = logged(text_log_formatter(), "hop failed", fields);
  REQUIRE(std::count(line.begin(), line.end(), '\n') == 1);
  const std::string before = " warn hop failed";
  return line.substr(line.find(before) + before.size(), line.size() - line.find(before) - before.size() - 1);
}

nlohmann::json as_json(const LogFields& fields) {
  return nlohmann::json::parse(logged(json_log_formatter("shop"), "hop failed", fields));
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

TEST_CASE("fields stand behind the message, and texts in quotes where they need them", "[log]") {
  REQUIRE(as_text({{"session", 7}, {"exchange", "orders"}}) == " session=7 exchange=orders");
  REQUIRE(as_text({{"exchange", ""}, {"key", "a b"}, {"said", "a=\"b\\\""}}) ==
          R"( exchange="" key="a b" said="a=\"b\\\"")");
  REQUIRE(as_text({{"yes", true}, {"most", UINT64_MAX}, {"least", int64_t{-1}}}) ==
          " yes=true most=18446744073709551615 least=-1");
  REQUIRE(as_text({if_known("client", ""), if_known("queue", "q")}) == " queue=q");
}

TEST_CASE("whatever a peer says in a field stays in it", "[log]") {
  REQUIRE(as_text({{"key", "x\n2026 error forged\r\x1b[2J"}}) ==
          R"( key="x\n2026 error forged\u000d\u001b[2J")");
  REQUIRE(as_text({{"key", std::string("\x1f"
                                       "t\x1f"
                                       "9:\0",
                                       5)},
                   {"last", 1}}) == R"( key="\u001ft\u001f9:" last=1)");
  REQUIRE(as_text({{"key", "caf\xC3"}}) == " key=\"caf\xEF\xBF\xBD\"");
  REQUIRE(as_text({{"key", std::string(5000, 'x')}}).size() < 2100);
}

TEST_CASE("in JSON a field is a member, and a number a number", "[log]") {
  const nlohmann::json line = as_json({{"session", 7},
                                       {"mandatory", false},
                                       {"exchange", ""},
                                       {"key", "a \"b\"\n\x1f\xFF"},
                                       if_known("client", "")});
  REQUIRE(line["message"] == "hop failed");
  REQUIRE(line["session"] == 7);
  REQUIRE(line["mandatory"] == false);
  REQUIRE(line["exchange"].get<std::string>().empty());
  REQUIRE(line["key"] == "a \"b\"\n\x1f\xEF\xBF\xBD");
  REQUIRE(line.size() == 8);
}

TEST_CASE("what is kept of a line can be added to", "[log]") {
  LogFields fields{{"session", 7}};
  fields.add({"queue", "q"}).add({{"code", 404}, {"reason", "none"}});
  REQUIRE(as_text(fields) == " session=7 queue=q code=404 reason=none");
  // Nothing of a line that was damaged is made up.
  const std::string separator(1, '\x1f');
  for (const std::string& damaged :
       {"x" + separator, "x" + separator + "t", "x" + separator + "tname",
        "x" + separator + "tname" + separator, "x" + separator + "tname" + separator + "9"})
    REQUIRE_FALSE(LogReader(damaged).next());
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
