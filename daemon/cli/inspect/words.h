// Sizes, times and texts out of messages, as a person reads them at a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bellhop {

std::string bytes_in_words(uint64_t bytes);                  // "417 bytes", "21.0 MB (20971520 bytes)"
std::string time_in_words(int64_t seconds);                  // "40 s", "12 min", "3 h 20 min", "2 days 4 h"
std::string utc_in_words(int64_t epoch_s);                   // "2026-12-01 03:00:00 UTC"
std::string counted(uint64_t count, std::string_view what);  // "1 message", "10,000 messages"

// Text that somebody else wrote, for a terminal: control characters and what is no UTF-8 are escaped, and
// what is longer is cut.
std::string printable(std::string_view text, size_t bytes_max = 400);

}  // namespace bellhop
