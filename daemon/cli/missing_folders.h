// Which folders that a configuration names are not there, on the host where this runs.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop {

// A sentence for each store's folder and each socket's folder that is no folder. bellhop creates neither.
std::vector<std::string> missing_folders(const config::Config& config);

}  // namespace bellhop
