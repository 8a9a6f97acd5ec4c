// `bellhop where KEY` and `bellhop where --queue QUEUE`: where payloads are, and what state they are in.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "daemon/cli/inspect/queue_visit.h"

namespace bellhop {

struct WhereOptions {
  std::string key;                    // or, when it is empty:
  VisitOptions visit;                 // the messages whose claims are looked for
  std::optional<std::string> xxh128;  // what the payload's checksum should be, of a key
  bool json = false;
};

// Changes nothing. Returns the exit code: 0 when every payload is there and nothing is wrong with it, 1 when
// not, or when the queue cannot be looked at, 2 for a wrong configuration.
int where(const std::string& config_file, const WhereOptions& options, std::ostream& out, std::ostream& err);

}  // namespace bellhop
