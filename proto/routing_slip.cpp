#include "proto/routing_slip.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "proto/table.h"
#include "proto/utf8.h"

namespace bellhop::proto {

namespace {

constexpr uint64_t position_max = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> split_route(std::string_view route) {
  std::vector<std::string> steps;
  while (!route.empty()) {
    const size_t comma = std::min(route.find(','), route.size());
    if (const auto name = trimmed(route.substr(0, comma)); !name.empty()) steps.emplace_back(name);
    route.remove_prefix(std::min(comma + 1, route.size()));
  }
  return steps;
}

// A float's whole part. What is no number at all is unreadable, so 0.
uint64_t whole_part(double value) {
  if (!(value >= 1) || std::isinf(value)) return 0;
  // The comparison is exact: this limit is a power of two.
  return value < 9223372036854775808.0 ? static_cast<uint64_t>(value) : position_max;
}

// Any integer width, a float, decimal digits in a string or a byte string.
uint64_t position_of(const Field& field) {
  const uint8_t* at = field.value.data();
  switch (field.type) {
    case 'L':
      // A width that no signed number holds is past every route's end, not unreadable.
      return std::min(load_u64(at), position_max);
    case 'f':
      return whole_part(std::bit_cast<float>(load_u32(at)));
    case 'd':
      return whole_part(std::bit_cast<double>(load_u64(at)));
    default:
      break;
  }
  const auto text = field_string(field);
  const auto value = text ? decimal_integer(*text) : field_integer(field);
  return value && *value > 0 ? static_cast<uint64_t>(*value) : 0;
}

std::string joined(const std::vector<std::string>& steps) {
  std::string route;
  for (const auto& step : steps) {
    if (!route.empty()) route += ',';
    route += step;
  }
  return route;
}

bool is_control(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0);
}

// What the libraries' trims take off (those of Python and .NET all of Unicode's white space).
bool is_blank(uint32_t point) {
  return point == ' ' || point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
         point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

}  // namespace

bool is_step_name(std::string_view name) {
  uint32_t last = ' ';
  for (bool is_first = true; !name.empty(); is_first = false) {
    const auto point = take_code_point(name);
    if (!point || *point == ',' || is_control(*point) || (is_first && is_blank(*point))) return false;
    last = *point;
  }
  return !is_blank(last);
}

Result<RoutingSlip> RoutingSlip::start_of(std::vector<std::string> steps, std::string run_id) {
  if (steps.empty()) return Error{"a routing slip needs at least one step"};
  if (steps.size() > slip_steps_max) {
    return Error{"a routing slip of " + std::to_string(steps.size()) + " steps: at most " +
                 std::to_string(slip_steps_max) + " are allowed"};
  }
  for (const auto& step : steps) {
    if (!is_step_name(step))
      return Error{"a routing slip with a step whose name is not " + std::string(step_name_rule)};
  }
  if (const size_t bytes = joined(steps).size(); bytes > slip_route_bytes_max) {
    return Error{"a routing slip of " + std::to_string(bytes) + " bytes: at most " +
                 std::to_string(slip_route_bytes_max) + " are allowed"};
  }
  RoutingSlip slip;
  slip.steps_ = std::move(steps);
  slip.run_id_ = std::move(run_id);
  return slip;
}

std::optional<RoutingSlip> RoutingSlip::from(Bytes header_fields, std::string_view fresh_run_id) {
  std::string_view route, run_id;
  uint64_t position = 0;
  TableCursor cursor(header_fields);
  // Of a header that is there twice the last one counts, as it does for a reader that makes a map of them.
  while (const auto field = cursor.next()) {
    if (field->name == slip_route_header) route = field_string(*field).value_or(std::string_view{});
    if (field->name == slip_position_header) position = position_of(*field);
    if (field->name == slip_id_header) run_id = field_string(*field).value_or(std::string_view{});
  }
  RoutingSlip slip;
  slip.steps_ = split_route(route);
  if (slip.steps_.empty()) return std::nullopt;
  slip.position_ = position;
  slip.run_id_ = run_id.empty() ? fresh_run_id : run_id;
  return slip;
}

std::optional<std::string_view> RoutingSlip::current() const {
  if (is_finished()) return std::nullopt;
  return steps_[position_];
}

std::optional<std::string_view> RoutingSlip::next() const {
  if (is_finished() || position_ + 1 >= steps_.size()) return std::nullopt;
  return steps_[position_ + 1];
}

void RoutingSlip::to_headers(Buffer& out) const {
  put_field(out, slip_route_header, joined(steps_));
  put_field(out, slip_position_header, static_cast<int64_t>(std::min(position_, position_max)));
  put_field(out, slip_id_header, run_id_);
}

}  // namespace bellhop::proto
