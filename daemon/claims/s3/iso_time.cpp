#include "daemon/claims/s3/iso_time.h"

#include <cstdio>

namespace bellhop {

std::optional<std::time_t> parse_iso_time(const std::string& text) {
  std::tm parts{};
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return {};
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return timegm(&parts);
}

}  // namespace bellhop
