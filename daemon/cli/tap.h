// `bellhop tap`: prints a line for each message that goes through the running bellhop.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "daemon/cli/admin_client.h"

namespace bellhop {

struct TapOptions {
  std::string route;       // empty: all messages
  uint64_t lines_max = 0;  // 0: until bellhop ends
  bool as_json = false;
};

// Exit code: 0 after `lines_max` lines, or when bellhop ended in order.
int tap(const AdminClient& client, const TapOptions& options, std::ostream& out, std::ostream& err);

// A line of /tap for a person. Empty: there is nothing to show. What is no such line is given back as it is.
std::string tap_text(const std::string& line);

}  // namespace bellhop
