// A line of the log is a message and its fields: `log_warn("hop failed", {{"session", id}, {"exchange",
// to}})`. As text that is `hop failed session=7 exchange=orders`, as JSON an object with a member for each
// field. The message is one of few texts, so that lines can be found and counted by it; all that differs is a
// field. A field's text may be a peer's: whoever writes the line escapes it (ops/log.cpp).
#pragma once

#include <spdlog/common.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace bellhop {

// One field, for the time of the call that is given it: it refers to a text and does not keep it.
class LogField {
 public:
  enum class Kind : char { text = 't', bare = 'b', none = 'n' };  // bare: a number, true or false

  template <std::integral Number>
  LogField(std::string_view name, Number value) : name_(name) {
    if constexpr (std::is_same_v<Number, bool>) {
      bare_ = value ? "true" : "false";
    } else {
      bare_ = std::to_string(value);
    }
  }
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view> LogField(std::string_view name,
                                                                       const Text& value)
      : name_(name), kind_(Kind::text), text_(value) {}

  std::string_view name() const { return name_; }
  Kind kind() const { return kind_; }
  std::string_view value() const { return kind_ == Kind::bare ? std::string_view(bare_) : text_; }

 private:
  friend LogField if_known(std::string_view name, std::string_view text);

  std::string_view name_;
  Kind kind_ = Kind::bare;
  std::string_view text_;
  std::string bare_;  // short: no allocation
};

// A field that is left out when its text is empty: not known, or not there.
inline LogField if_known(std::string_view name, std::string_view text) {
  LogField field(name, text);
  if (text.empty()) field.kind_ = LogField::Kind::none;
  return field;
}

// Fields to keep, or to add to. As one text, see LogReader.
class LogFields {
 public:
  static constexpr size_t value_bytes_max = 2048;  // of one value; the rest is cut off

  LogFields() = default;
  LogFields(std::initializer_list<LogField> fields) { add(fields); }
  LogFields& add(std::initializer_list<LogField> fields);
  LogFields& add(const LogField& field);
  const std::string& encoded() const { return encoded_; }

 private:
  std::string encoded_;
};

// Takes a line apart again: what spdlog hands to its formatter is one text.
class LogReader {
 public:
  struct Field {
    std::string_view name, value;
    bool is_text;
  };

  explicit LogReader(std::string_view encoded);
  std::string_view message() const { return message_; }
  std::optional<Field> next();

 private:
  std::string_view message_, rest_;
};

// Whether a line of that level is written: what a line would only cost can be left undone.
bool logs(spdlog::level::level_enum level);

// Any thread. Below the level it costs one comparison.
void log_line(spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields = {});
void log_line(spdlog::level::level_enum level, std::string_view message, const LogFields& fields);

inline void log_debug(std::string_view message, const LogFields& fields) {
  log_line(spdlog::level::debug, message, fields);
}
inline void log_info(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log_line(spdlog::level::info, message, fields);
}
inline void log_info(std::string_view message, const LogFields& fields) {
  log_line(spdlog::level::info, message, fields);
}
inline void log_warn(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log_line(spdlog::level::warn, message, fields);
}
inline void log_warn(std::string_view message, const LogFields& fields) {
  log_line(spdlog::level::warn, message, fields);
}
inline void log_error(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log_line(spdlog::level::err, message, fields);
}
inline void log_error(std::string_view message, const LogFields& fields) {
  log_line(spdlog::level::err, message, fields);
}

}  // namespace bellhop
