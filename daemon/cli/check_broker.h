// `bellhop check --broker FILE` compares what the broker has with what bellhop would declare.
#pragma once

#include "config/config.h"
#include "daemon/cli/report.h"

namespace bellhop {

// Blocking. Connects to the first broker of the list that lets bellhop in, and prints what differs there,
// with a command where one helps. It changes nothing at the broker. AMQP cannot show bindings, so they are
// left out. True: everything is there as bellhop would declare it, or will be once bellhop has started.
bool check_broker(const config::Config& config, Report& report);

}  // namespace bellhop
