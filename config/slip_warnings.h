// What an operator should know about itineraries that cannot be followed to their end.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// A sentence for each exchange that a route's itinerary names behind its first stop and that hops may not go
// to.
std::vector<std::string> slip_warnings(const Config& config);

}  // namespace bellhop::config
