#include "daemon/cli/inspect/field_json.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "proto/itinerary.h"
#include "proto/utf8.h"

namespace bellhop {

namespace {

constexpr int depth_max = 64;  // as proto/table.h walks
using Json = nlohmann::ordered_json;

std::string hex_of(std::string_view bytes) {
  std::string out = "hex:";
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Json table(Bytes fields, int depth);

Json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

Json value_of(const proto::Field& field, int depth) {
  if (depth > depth_max) return "...";
  switch (field.type) {
    case 't':
      return field.value[0] != 0;
    case 'S':
      return json_text(proto::field_string(field).value_or(""));
    case 'x':
      return hex_of(proto::field_string(field).value_or(""));
    case 'T':
      return proto::utc_seconds(proto::field_integer(field).value_or(0));
    case 'L':
      return load_u64(field.value.data());
    case 'f':
      return number(static_cast<double>(std::bit_cast<float>(load_u32(field.value.data()))));
    case 'd':
      return number(std::bit_cast<double>(load_u64(field.value.data())));
    case 'D': {
      const auto unscaled = static_cast<int32_t>(load_u32(field.value.data() + 1));
      return fmt::format("{}e-{}", unscaled, field.value[0]);
    }
    case 'F':
      return table(field.value.subspan(4), depth + 1);
    case 'A': {
      Json out = Json::array();
      proto::ArrayCursor cursor(field.value.subspan(4));
      while (const auto each = cursor.next()) out.push_back(value_of(*each, depth + 1));
      return out;
    }
    case 'V':
      return nullptr;
    default:
      if (const auto integer = proto::field_integer(field)) return *integer;
      return "?";
  }
}

Json table(Bytes fields, int depth) {
  Json out = Json::object();
  proto::TableCursor cursor(fields);
  while (const auto field = cursor.next()) {
    const std::string name = json_text(field->name);
    if (!out.contains(name)) out[name] = value_of(*field, depth);
  }
  return out;
}

}  // namespace

std::string json_text(std::string_view text) {
  return proto::find_invalid_utf8(text) == std::string_view::npos ? std::string(text) : hex_of(text);
}

Json json_of_field(const proto::Field& field) {
  return value_of(field, 1);
}

Json json_of_table(Bytes fields) {
  return table(fields, 1);
}

}  // namespace bellhop
