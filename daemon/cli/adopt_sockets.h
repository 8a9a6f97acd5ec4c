// The sockets that bellhop inherits, for the listeners of its configuration.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/door/inherited_sockets.h"

namespace bellhop {

// `names` as in ServiceEnvironment::inherited. Error: one is for no listener, clients' or admin's. Then
// nothing may start: whoever made the socket expects somebody to answer there.
Result<InheritedSockets> adopt_sockets(const std::vector<std::string>& names, const config::Config& config);

}  // namespace bellhop
