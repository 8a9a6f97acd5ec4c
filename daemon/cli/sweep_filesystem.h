// `bellhop sweep` of a filesystem store: what its retention would remove at the next hour, now.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "config/config.h"

namespace bellhop {

// Removes objects older than `older_than_ms`, which is the store's own retention when it is not given; with
// neither only unfinished files. Blocks. The exit code, as sweep()'s.
int sweep_filesystem(const std::string& name, const config::FilesystemStore& store,
                     std::optional<uint64_t> older_than_ms, bool dry_run, std::ostream& out,
                     std::ostream& err);

}  // namespace bellhop
