// `bellhop sweep` of a filesystem store: removes now what its retention would remove within the hour.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "config/config.h"

namespace bellhop {

// Blocking. Removes objects older than `older_than_ms`, by default the store's own retention. With neither it
// removes only unfinished files. Returns sweep()'s exit code.
int sweep_filesystem(const std::string& name, const config::FilesystemStore& store,
                     std::optional<uint64_t> older_than_ms, bool dry_run, std::ostream& out,
                     std::ostream& err);

}  // namespace bellhop
