// UTF-8 (RFC 3629), one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bellhop::proto {

// Takes the first code point off `text`. Nothing, with `text` unchanged: it is empty, or does not begin with
// well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
std::optional<uint32_t> take_code_point(std::string_view& text);

// The length of the well-formed sequence at the start of `text`, 0 if there is none.
size_t utf8_length(std::string_view text);

// The position of the first byte that is no part of a well-formed sequence; npos when there is none.
size_t find_invalid_utf8(std::string_view text);

}  // namespace bellhop::proto
