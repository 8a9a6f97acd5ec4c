#include "proto/json_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bellhop::proto {

namespace {

using nlohmann::json;

constexpr std::string_view blanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Walks JSON text octet by octet and knows which of them stand in a string and how deep.
class Scanner {
 public:
  // Takes the next octet. True when it is one of the text's own: not part of a string.
  bool is_structure(char c) {
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      return false;
    }
    if (c == '"') {
      in_string_ = true;
      return false;
    }
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') --depth_;
    return true;
  }
  int depth() const { return depth_; }

 private:
  bool in_string_ = false, is_escaped_ = false;
  int depth_ = 0;
};

JsonMember member_of(std::string_view text, size_t colon) {
  if (colon == std::string_view::npos) return {{}, trimmed(text)};
  return {trimmed(text.substr(0, colon)), trimmed(text.substr(colon + 1))};
}

}  // namespace

bool is_json(std::string_view json_text, int depth_max) {
  // The depth is known before a parser sees the text, so that no parser has to be trusted with it.
  Scanner scanner;
  for (const char c : json_text) {
    scanner.is_structure(c);
    if (scanner.depth() > depth_max) return false;
  }
  // The library passes over a byte order mark; JSON on a wire has none (RFC 8259 section 8.1).
  if (json_text.starts_with("\xEF\xBB\xBF")) return false;
  // The parser takes a NUL for the end of its input, whatever stands behind it. JSON has none.
  if (json_text.find('\0') != std::string_view::npos) return false;
  return json::accept(json_text.begin(), json_text.end());
}

bool is_json_object(std::string_view value) {
  return value.starts_with('{');
}
bool is_json_array(std::string_view value) {
  return value.starts_with('[');
}

std::vector<JsonMember> json_members(std::string_view value) {
  std::vector<JsonMember> members;
  const bool is_object = is_json_object(value);
  if (value.size() < 2) return members;
  const std::string_view inside = value.substr(1, value.size() - 2);
  if (trimmed(inside).empty()) return members;
  Scanner scanner;
  size_t begin = 0, colon = std::string_view::npos;
  for (size_t at = 0; at < inside.size(); ++at) {
    if (!scanner.is_structure(inside[at]) || scanner.depth() != 0) continue;
    if (inside[at] == ':' && is_object) colon = at - begin;
    if (inside[at] != ',') continue;
    members.push_back(member_of(inside.substr(begin, at - begin), colon));
    begin = at + 1;
    colon = std::string_view::npos;
  }
  members.push_back(member_of(inside.substr(begin), colon));
  return members;
}

std::optional<std::string> json_text(std::string_view value) {
  if (value == "null") return std::string();
  if (is_json_object(value) || is_json_array(value)) return std::nullopt;
  if (!value.starts_with('"')) return std::string(value);
  const json parsed = json::parse(value.begin(), value.end(), nullptr, false);
  if (!parsed.is_string()) return std::nullopt;
  return *parsed.get_ptr<const std::string*>();
}

std::string json_compact(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  Scanner scanner;
  for (const char c : value) {
    if (scanner.is_structure(c) && blanks.find(c) != std::string_view::npos) continue;
    out += c;
  }
  return out;
}

std::string json_quoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace bellhop::proto
