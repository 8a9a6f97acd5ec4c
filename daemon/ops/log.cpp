#include "daemon/ops/log.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "proto/utf8.h"

#include "daemon/ops/log_line.h"
#include "daemon/ops/log_queue.h"

namespace bellhop {
namespace {

using Out = spdlog::memory_buf_t;

void put_text(Out& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

// UTC, milliseconds: `2026-01-31T10:00:00.123Z`.
void put_time(Out& out, spdlog::log_clock::time_point when) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const auto seconds = static_cast<std::time_t>(since / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  put_text(out, {text, size});
  const int rest = std::snprintf(text, sizeof text, ".%03dZ", static_cast<int>(since % 1000));
  put_text(out, {text, static_cast<size_t>(rest)});
}

// Of the character that `text` is: those below 0x20, 0x7f, and those from 0x80 to 0x9f, which are two bytes.
std::optional<unsigned> control_code(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (text.size() == 1 && (first < 0x20 || first == 0x7f)) return first;
  if (text.size() != 2 || first != 0xc2) return {};
  const auto second = static_cast<unsigned char>(text.back());
  return second < 0xa0 ? std::optional<unsigned>(second) : std::nullopt;
}

// A byte that is no UTF-8 becomes U+FFFD; no text can begin a line of its own or move a terminal's cursor.
// `quoted`: as inside a JSON string, else quotes and backslashes stay as they are.
void put_escaped(Out& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const size_t length = proto::utf8_length(text);
    if (length == 0) {
      put_text(out, "\xEF\xBF\xBD");
      text.remove_prefix(1);
      continue;
    }
    if (quoted && (first == '"' || first == '\\')) {
      out.push_back('\\');
      out.push_back(static_cast<char>(first));
    } else if (first == '\n') {
      put_text(out, "\\n");
    } else if (const std::optional<unsigned> code = control_code(text.substr(0, length))) {
      char hex[8];
      const int size = std::snprintf(hex, sizeof hex, "\\u%04x", *code & 0xffU);
      put_text(out, {hex, static_cast<size_t>(size)});
    } else {
      put_text(out, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

std::string_view level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return "trace";
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warn";
    default:
      return "error";
  }
}

std::string_view payload_of(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

// A text without blanks, quotes and what must be escaped stands as it is, so that a line can be read and cut.
bool needs_quotes(std::string_view text) {
  return text.empty() || std::any_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= ' ' || byte >= 0x7f || c == '"' || c == '\\' || c == '=';
         });
}

void put_fields_as_text(Out& out, LogReader& reader) {
  while (const auto field = reader.next()) {
    out.push_back(' ');
    put_text(out, field->name);
    out.push_back('=');
    const bool quoted = field->is_text && needs_quotes(field->value);
    if (quoted) out.push_back('"');
    put_escaped(out, field->value, quoted);
    if (quoted) out.push_back('"');
  }
}

void put_fields_as_json(Out& out, LogReader& reader) {
  while (const auto field = reader.next()) {
    put_text(out, ",\"");
    put_escaped(out, field->name, true);
    put_text(out, field->is_text ? "\":\"" : "\":");
    put_escaped(out, field->value, true);
    if (field->is_text) out.push_back('"');
  }
}

// Without what stands before the first one.
std::string without_first(const Out& out) {
  return out.size() == 0 ? std::string() : std::string(out.data() + 1, out.size() - 1);
}

class TextFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, Out& out) override {
    put_time(out, message.time);
    out.push_back(' ');
    put_text(out, level_name(message.level));
    out.push_back(' ');
    LogReader reader(payload_of(message));
    put_escaped(out, reader.message(), false);
    put_fields_as_text(out, reader);
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }
};

class JsonFormatter : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string service) : service_(std::move(service)) {}
  void format(const spdlog::details::log_msg& message, Out& out) override {
    put_text(out, "{\"time\":\"");
    put_time(out, message.time);
    put_text(out, "\",\"level\":\"");
    put_text(out, level_name(message.level));
    put_text(out, "\",\"service\":\"");
    put_escaped(out, service_, true);
    LogReader reader(payload_of(message));
    put_text(out, "\",\"message\":\"");
    put_escaped(out, reader.message(), true);
    out.push_back('"');
    put_fields_as_json(out, reader);
    put_text(out, "}\n");
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(service_);
  }

 private:
  std::string service_;
};

spdlog::level::level_enum level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace:
      return spdlog::level::trace;
    case config::LogLevel::debug:
      return spdlog::level::debug;
    case config::LogLevel::info:
      return spdlog::level::info;
    case config::LogLevel::warn:
      return spdlog::level::warn;
    case config::LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

std::string fields_as_text(const LogFields& fields) {
  Out out;
  LogReader reader(fields.encoded());
  put_fields_as_text(out, reader);
  return without_first(out);
}

std::string fields_as_json(const LogFields& fields) {
  Out out;
  LogReader reader(fields.encoded());
  put_fields_as_json(out, reader);
  return without_first(out);
}

std::string log_time() {
  Out out;
  put_time(out, spdlog::log_clock::now());
  return {out.data(), out.size()};
}

std::unique_ptr<spdlog::formatter> text_log_formatter() {
  return std::make_unique<TextFormatter>();
}

std::unique_ptr<spdlog::formatter> json_log_formatter(std::string service) {
  return std::make_unique<JsonFormatter>(std::move(service));
}

namespace {

// As the default logger itself, one for the process. The last one that was set up.
std::shared_ptr<LogQueue> queue;

}  // namespace

void set_up_log(const config::Config& config) {
  queue = std::make_shared<LogQueue>(
      STDERR_FILENO, config.log_json ? json_log_formatter(config.service) : text_log_formatter());
  auto logger = std::make_shared<spdlog::logger>("bellhop", queue);
  logger->set_level(level_of(config.log_level));
  // spdlog's own handler writes to stderr, where it may block.
  logger->set_error_handler([](const std::string&) {});
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(config::LogLevel level) {
  spdlog::default_logger_raw()->set_level(level_of(level));
}

bool set_log_level(std::string_view name) {
  using namespace spdlog::level;
  for (const level_enum level : {trace, debug, info, warn, err}) {
    if (name != level_name(level)) continue;
    spdlog::default_logger_raw()->set_level(level);
    return true;
  }
  return false;
}

std::string_view log_level() {
  return level_name(spdlog::default_logger_raw()->level());
}

void finish_log(std::chrono::milliseconds at_most) {
  if (queue != nullptr) queue->finish(at_most);
}

uint64_t log_lines_dropped() {
  return queue != nullptr ? queue->dropped() : 0;
}

}  // namespace bellhop
