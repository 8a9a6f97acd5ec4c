// What an operator should know about a `consume.hold_max` that a broker does not wait for.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

// A sentence when a delivery may be held for longer than RabbitMQ waits for its acknowledgement (30 minutes,
// unless its consumer_timeout says otherwise), less what a delivery needs besides: the broker then closes the
// channel, and everything on it counts as delivered once more.
std::vector<std::string> hold_warnings(const Config& config);

}  // namespace bellhop::config
