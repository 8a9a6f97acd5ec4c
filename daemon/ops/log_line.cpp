#include "daemon/ops/log_line.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

namespace bellhop {

namespace {

// A line as one text: the message, and for each field
//
//   0x1f kind name 0x1f length ':' value
//
// The length comes first, so a value may be any bytes. A message or a name has no 0x1f.
constexpr char separator = '\x1f';
constexpr std::string_view cut_mark = "\xE2\x80\xA6";  // an ellipsis

void put_without_separator(std::string& out, std::string_view text) {
  const size_t begin = out.size();
  out += text;
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), separator, ' ');
}

std::string line_of(std::string_view message, std::string_view fields) {
  std::string line;
  line.reserve(message.size() + fields.size());
  put_without_separator(line, message);
  line += fields;
  return line;
}

void write(spdlog::level::level_enum level, const std::string& line) {
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

LogFields& LogFields::add(std::initializer_list<LogField> fields) {
  for (const LogField& field : fields) add(field);
  return *this;
}

LogFields& LogFields::add(const LogField& field) {
  if (field.kind() == LogField::Kind::none) return *this;
  const std::string_view value = field.value().substr(0, value_bytes_max);
  const bool is_cut = value.size() != field.value().size();
  encoded_ += separator;
  encoded_ += static_cast<char>(field.kind());
  put_without_separator(encoded_, field.name());
  encoded_ += separator;
  encoded_ += std::to_string(value.size() + (is_cut ? cut_mark.size() : 0));
  encoded_ += ':';
  encoded_ += value;
  if (is_cut) encoded_ += cut_mark;
  return *this;
}

LogReader::LogReader(std::string_view encoded)
    : message_(encoded.substr(0, encoded.find(separator))), rest_(encoded.substr(message_.size())) {}

std::optional<LogReader::Field> LogReader::next() {
  if (rest_.size() < 2) return {};
  const size_t name_end = rest_.find(separator, 2);
  const size_t length_end = rest_.find(':', name_end);
  if (name_end == std::string_view::npos || length_end == std::string_view::npos) return {};
  Field field;
  field.is_text = rest_[1] == static_cast<char>(LogField::Kind::text);
  field.name = rest_.substr(2, name_end - 2);
  size_t length = 0;
  std::from_chars(rest_.data() + name_end + 1, rest_.data() + length_end, length);
  field.value = rest_.substr(length_end + 1, length);
  rest_.remove_prefix(length_end + 1 + field.value.size());
  return field;
}

bool logs(spdlog::level::level_enum level) {
  return spdlog::default_logger_raw()->should_log(level);
}

void log_line(spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields) {
  if (!logs(level)) return;
  write(level, line_of(message, LogFields(fields).encoded()));
}

void log_line(spdlog::level::level_enum level, std::string_view message, const LogFields& fields) {
  if (logs(level)) write(level, line_of(message, fields.encoded()));
}

}  // namespace bellhop
