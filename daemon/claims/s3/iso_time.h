// Times as AWS's services write them.
#pragma once

#include <ctime>
#include <optional>
#include <string>

namespace bellhop {

// Reads "2026-11-30T12:00:00Z", with a fraction or without: seconds since 1970. Nothing for any other text.
std::optional<std::time_t> parse_iso_time(const std::string& text);

}  // namespace bellhop
