// `bellhop where KEY`: where a payload is, and what state it is in.
#pragma once

#include <optional>
#include <ostream>
#include <string>

namespace bellhop {

struct WhereOptions {
  std::string key;
  std::optional<std::string> xxh128;  // what the payload's checksum should be
  bool json = false;
};

// Changes nothing. Returns the exit code: 0 when the payload is there and nothing is wrong with it, 1 when it
// is not, 2 for a wrong configuration.
int where(const std::string& config_file, const WhereOptions& options, std::ostream& out, std::ostream& err);

}  // namespace bellhop
