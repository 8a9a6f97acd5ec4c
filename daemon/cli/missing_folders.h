// Finds the folders that a configuration names and this host does not have.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bellhop {

// One sentence for each store's or socket's folder that is no folder. bellhop creates neither.
std::vector<std::string> missing_folders(const config::Config& config);
// The same for the folder of scratch files, where an S3 store needs one. Empty: nothing is wrong.
std::string missing_scratch_folder(const config::Config& config);

}  // namespace bellhop
