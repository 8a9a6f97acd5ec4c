// Warns of a configuration whose stores forget sooner than its queues.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// One sentence for each declared pipeline and each store with a retention that its messages' payloads can be
// in. (A pipeline's queues have no time limit: bellhop declares them without one.)
std::vector<std::string> retention_warnings(const Config& config);

}  // namespace bellhop::config
