#include "config/units.h"

#include <charconv>
#include <limits>
#include <span>

namespace bellhop::config {

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};
// From the largest to the smallest, as they are tried when a value is shown.
constexpr Unit byte_units[] = {
    {"GiB", uint64_t{1} << 30}, {"MiB", uint64_t{1} << 20}, {"KiB", uint64_t{1} << 10}, {"B", 1}};
constexpr Unit time_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

Result<uint64_t> parse(std::string_view text, std::span<const Unit> units, const char* form) {
  if (text == "0") return uint64_t{0};
  if (text.starts_with('-')) return Error{std::string("must not be negative, allowed: ") + form};
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string_view number = text.substr(0, digits);
  const std::string_view unit_name =
      digits == std::string_view::npos ? std::string_view{} : text.substr(digits);
  const Error malformed{std::string("is not a whole number with a unit, allowed: ") + form};
  if (number.empty()) return malformed;
  for (const Unit& unit : units) {
    if (unit.name != unit_name) continue;
    const Result<uint64_t> value = parse_integer(number);
    if (!value || value.value() > std::numeric_limits<uint64_t>::max() / unit.factor)
      return Error{std::string("is too large, allowed: ") + form};
    return value.value() * unit.factor;
  }
  return malformed;
}

std::string show(uint64_t value, std::span<const Unit> units) {
  if (value == 0) return "0";
  for (const Unit& unit : units) {
    if (value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.name);
  }
  return std::to_string(value);
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  return parse(text, byte_units, "B, KiB, MiB or GiB after a whole number, as in 64KiB, or 0");
}

Result<uint64_t> parse_time_ms(std::string_view text) {
  return parse(text, time_units, "ms, s, m, h or d after a whole number, as in 30s, or 0");
}

Result<uint32_t> parse_mode(std::string_view text) {
  const Error malformed{
      "is not a file mode, allowed: octal digits in quotes from \"0000\" to \"0777\", as in \"0660\""};
  if (text.size() == 4 && text.front() == '0') text.remove_prefix(1);
  if (text.size() != 3) return malformed;
  uint32_t mode = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return malformed;
    mode = mode * 8 + static_cast<uint32_t>(c - '0');
  }
  return mode;
}

Result<uint64_t> parse_integer(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end) return Error{"is not a whole number"};
  return value;
}

std::string show_bytes(uint64_t bytes) {
  return show(bytes, byte_units);
}
std::string show_time(uint64_t ms) {
  // 90s reads better than 90000ms, but 24h is a day to nobody who wrote 1440m: the largest exact unit is
  // used.
  return show(ms, time_units);
}

}  // namespace bellhop::config
