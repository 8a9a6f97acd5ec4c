// `bellhop check --broker FILE`: what the broker has, compared with what bellhop would declare.
#pragma once

#include "config/config.h"
#include "daemon/cli/report.h"

namespace bellhop {

// Connects to the first broker of the list that lets bellhop in, and prints what is different there, with a
// command where there is one that helps. Nothing at the broker changes. Bindings cannot be seen over AMQP and
// are left out. True when all is there as bellhop would declare it, or will be once bellhop has started.
bool check_broker(const config::Config& config, Report& report);

}  // namespace bellhop
