// Sizes and times as an operator writes them: a whole number and a unit. Plain 0 needs no unit.
#pragma once

#include <cstdint>
#include <string_view>

#include "proto/result.h"

namespace bellhop::config {

Result<uint64_t> parse_bytes(std::string_view text);    // B, KiB, MiB, GiB
Result<uint64_t> parse_time_ms(std::string_view text);  // ms, s, m, h, d
// A file mode in octal, at most 0777: three digits, or four of which the first is 0.
Result<uint32_t> parse_mode(std::string_view text);
Result<uint64_t> parse_integer(std::string_view text);  // decimal digits only

// The shortest exact form: 65536 -> 64KiB, 90000 -> 90s.
std::string show_bytes(uint64_t bytes);
std::string show_time(uint64_t ms);

}  // namespace bellhop::config
