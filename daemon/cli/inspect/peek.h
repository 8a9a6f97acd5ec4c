// `bellhop peek QUEUE`: the messages in front of a queue, with their slips and claims. The queue keeps them.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "daemon/cli/inspect/queue_visit.h"

namespace bellhop {

struct PeekOptions {
  VisitOptions visit;
  bool body = false;                    // also the payload's first bytes
  std::optional<std::string> save_dir;  // a folder for the payloads and all that is said of them
  bool json = false;
};

// Returns the exit code: 0 also for an empty queue; 1 when the queue cannot be looked at, a message is not
// shown for what it would cost it, or a payload cannot be shown or saved; 2 for a wrong configuration.
int peek(const std::string& config_file, const PeekOptions& options, std::ostream& out, std::ostream& err);

}  // namespace bellhop
