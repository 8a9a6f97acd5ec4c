// What an operator should know about a configuration whose stores forget sooner than its queues.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// A sentence for each declared pipeline (its queues have no time limit: bellhop declares them without one)
// and each store with a retention that its messages' payloads can be in.
std::vector<std::string> retention_warnings(const Config& config);

}  // namespace bellhop::config
