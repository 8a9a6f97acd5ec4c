#include "daemon/cli/inspect/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/itinerary.h"
#include "proto/utf8.h"

namespace bellhop {

namespace {

constexpr int64_t minute_s = 60, hour_s = 60 * minute_s, day_s = 24 * hour_s;

std::string with_rest(int64_t seconds, int64_t unit_s, std::string_view unit, int64_t rest_s,
                      std::string_view rest_unit) {
  const int64_t count = seconds / unit_s, rest = seconds % unit_s / rest_s;
  const std::string head = fmt::format("{} {}", count, unit);
  return rest == 0 ? head : fmt::format("{} {} {}", head, rest, rest_unit);
}

}  // namespace

std::string bytes_in_words(uint64_t bytes) {
  constexpr std::string_view units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 10000) return counted(bytes, "byte");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return fmt::format("{:.1f} {} ({} bytes)", value, units[unit], bytes);
}

std::string time_in_words(int64_t seconds) {
  if (seconds < 2 * minute_s) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < hour_s) return fmt::format("{} min", seconds / minute_s);
  if (seconds < day_s) return with_rest(seconds, hour_s, "h", minute_s, "min");
  return with_rest(seconds, day_s, seconds < 2 * day_s ? "day" : "days", hour_s, "h");
}

std::string utc_in_words(int64_t epoch_s) {
  std::string text = proto::utc_seconds(epoch_s);
  std::replace(text.begin(), text.end(), 'T', ' ');
  text.pop_back();  // the Z
  return text + " UTC";
}

std::string counted(uint64_t count, std::string_view what) {
  std::string number = std::to_string(count);
  for (size_t at = number.size(); at > 3;) number.insert(at -= 3, ",");
  return fmt::format("{} {}{}", number, what, count == 1 ? "" : "s");
}

std::string printable(std::string_view text, size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= bytes_max) return out + fmt::format("... ({} bytes more)", text.size());
    const size_t length = std::max<size_t>(proto::utf8_length(text), 1);
    std::string_view rest = text;
    const auto code_point = proto::take_code_point(rest);
    if (!code_point) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (*code_point == '\n') {
      out += "\\n";
    } else if (*code_point == '\t') {
      out += "\\t";
    } else if (*code_point < 0x20 || (*code_point >= 0x7f && *code_point < 0xa0)) {
      out += fmt::format("\\x{:02x}", *code_point);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace bellhop
