// /status: the state of the daemon as one JSON object. The page and `bellhop status` are made from it.
#pragma once

#include <string>

#include "daemon/admin/sources.h"

namespace bellhop {

// Any thread.
std::string status_json(const AdminSources& sources);

}  // namespace bellhop
