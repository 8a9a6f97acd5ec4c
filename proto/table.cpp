#include "proto/table.h"

#include <charconv>
#include <limits>

#include "proto/writer.h"

namespace bellhop::proto {

namespace {

constexpr size_t malformed = std::numeric_limits<size_t>::max();
constexpr int depth_max = 64;

bool is_walkable(Bytes bytes, bool is_table, int depth);

// The size of the value that `rest` starts with, which is at nesting level `depth` (1 in the outermost
// table).
size_t value_bytes(char type, Bytes rest, int depth) {
  size_t size = 0;
  switch (type) {
    case 't':
    case 'b':
    case 'B':
      size = 1;
      break;
    case 's':
    case 'u':
      size = 2;
      break;
    case 'I':
    case 'i':
    case 'f':
      size = 4;
      break;
    case 'l':
    case 'L':
    case 'd':
    case 'T':
      size = 8;
      break;
    case 'D':
      size = 5;
      break;
    case 'V':
      return 0;
    case 'S':
    case 'x':
    case 'A':
    case 'F': {
      if (rest.size() < 4) return malformed;
      const size_t content = load_u32(rest.data());
      if (rest.size() - 4 < content) return malformed;
      if ((type == 'A' || type == 'F') && !is_walkable(rest.subspan(4, content), type == 'F', depth + 1)) {
        return malformed;
      }
      return 4 + content;
    }
    default:
      return malformed;
  }
  return rest.size() < size ? malformed : size;
}

// Whether the content of a table (named values) or of an array (values) is well-formed. Every byte is looked
// at once, whatever the nesting, and the recursion ends at depth_max.
bool is_walkable(Bytes bytes, bool is_table, int depth) {
  if (depth > depth_max) return false;
  while (!bytes.empty()) {
    size_t type_at = 0;
    if (is_table) type_at = size_t{1} + bytes[0];
    if (bytes.size() <= type_at) return false;
    const Bytes rest = bytes.subspan(type_at + 1);
    const size_t size = value_bytes(static_cast<char>(bytes[type_at]), rest, depth);
    if (size == malformed) return false;
    bytes = rest.subspan(size);
  }
  return true;
}

std::optional<int64_t> fitting(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

std::optional<int64_t> decimal_integer(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<Field> ArrayCursor::next() {
  if (rest_.empty() || !ok_) return std::nullopt;
  Field field;
  field.type = static_cast<char>(rest_[0]);
  const size_t size = value_bytes(field.type, rest_.subspan(1), 1);
  if (size == malformed) {
    ok_ = false;
    return std::nullopt;
  }
  field.value = rest_.subspan(1, size);
  field.raw = rest_.first(1 + size);
  rest_ = rest_.subspan(1 + size);
  return field;
}

std::optional<Field> TableCursor::next() {
  if (rest_.empty() || !ok_) return std::nullopt;
  const size_t name_bytes = rest_[0];
  const size_t value_at = name_bytes + 2;
  if (rest_.size() < value_at) {
    ok_ = false;
    return std::nullopt;
  }
  Field field;
  field.name = as_text(rest_.subspan(1, name_bytes));
  field.type = static_cast<char>(rest_[name_bytes + 1]);
  const size_t size = value_bytes(field.type, rest_.subspan(value_at), 1);
  if (size == malformed) {
    ok_ = false;
    return std::nullopt;
  }
  field.value = rest_.subspan(value_at, size);
  field.raw = rest_.first(value_at + size);
  rest_ = rest_.subspan(value_at + size);
  return field;
}

bool table_is_well_formed(Bytes fields) {
  return is_walkable(fields, true, 1);
}

std::optional<std::string_view> field_string(const Field& field) {
  if ((field.type != 'S' && field.type != 'x') || field.value.size() < 4) return std::nullopt;
  return as_text(field.value.subspan(4));
}

std::optional<int64_t> field_integer(const Field& field) {
  const uint8_t* at = field.value.data();
  switch (field.type) {
    case 't':
      return at[0] != 0 ? 1 : 0;
    case 'b':
      return static_cast<int8_t>(at[0]);
    case 'B':
      return at[0];
    case 's':
      return static_cast<int16_t>(load_u16(at));
    case 'u':
      return load_u16(at);
    case 'I':
      return static_cast<int32_t>(load_u32(at));
    case 'i':
      return load_u32(at);
    case 'l':
      return static_cast<int64_t>(load_u64(at));
    case 'L':
    case 'T':
      return fitting(load_u64(at));
    case 'S':
      return decimal_integer(as_text(field.value.subspan(4)));
    default:
      return std::nullopt;
  }
}

std::optional<std::string> field_text(const Field& field) {
  if (const auto text = field_string(field)) return std::string(*text);
  if (field.type == 't') return field.value[0] != 0 ? "true" : "false";
  if (field.type == 'L' || field.type == 'T') return std::to_string(load_u64(field.value.data()));
  if (const auto value = field_integer(field)) return std::to_string(*value);
  return std::nullopt;
}

void put_field(Buffer& out, std::string_view name, std::string_view text) {
  name = shortstr_cut(name);
  Writer to(out, 1 + name.size() + 1 + 4 + text.size());
  to.shortstr(name);
  to.u8('S');
  to.longstr(text);
}

void put_field(Buffer& out, std::string_view name, int64_t value) {
  name = shortstr_cut(name);
  Writer to(out, 1 + name.size() + 1 + 8);
  to.shortstr(name);
  to.u8('l');
  to.u64(static_cast<uint64_t>(value));
}

}  // namespace bellhop::proto
