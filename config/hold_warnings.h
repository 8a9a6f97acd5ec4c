// Warns of a `consume.hold_max` that is longer than a broker waits.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// One sentence when bellhop may hold a delivery for longer than RabbitMQ waits for its acknowledgement (30
// minutes, unless its consumer_timeout says otherwise), less what a delivery needs besides. The broker would
// then close the channel, and count everything on it as delivered once more.
std::vector<std::string> hold_warnings(const Config& config);

}  // namespace bellhop::config
