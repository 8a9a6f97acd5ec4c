// Warns of itineraries that cannot be followed to their end.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// One sentence for each exchange that a route's itinerary names after its first stop and that hops may not go
// to.
std::vector<std::string> slip_warnings(const Config& config);

}  // namespace bellhop::config
