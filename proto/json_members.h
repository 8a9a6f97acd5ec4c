// Takes JSON apart without rewriting it. What bellhop does not own in an itinerary keeps its own text (a
// number of any precision, a key that is there twice), which parsing into values and back would lose.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bellhop::proto {

// One member of an object, or one element of an array (whose key is empty). Borrows from the JSON it was
// taken from.
struct JsonMember {
  std::string_view key;    // as written, with its quotes and escapes
  std::string_view value;  // as written, without blanks around it
};

// Whether the text is JSON in UTF-8, nested at most depth_max deep. A root object or array has depth 1.
bool is_json(std::string_view json, int depth_max);

// The parts of one value. Precondition of each: the value is part of a text for which is_json() returned
// true.
bool is_json_object(std::string_view value);
bool is_json_array(std::string_view value);
std::vector<JsonMember> json_members(std::string_view value);  // of an object or array
// A string decoded; a number, true or false as written; null as empty; nothing for an object or array.
std::optional<std::string> json_text(std::string_view value);
// The value without the blanks between its tokens.
std::string json_compact(std::string_view value);

// The text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace bellhop::proto
