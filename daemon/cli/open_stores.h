// Makes the stores that a configuration names: the one place that knows every kind.
#pragma once

#include <memory>

#include "config/config.h"
#include "daemon/claims/stores.h"
#include "daemon/ops/meter.h"
#include "proto/result.h"

namespace bellhop {

// Makes every configured store. Blocks as long as the filesystem does. Errors name the store: a path that is
// no directory, a group that does not exist. A directory that is missing or not writable now is only a
// warning in the log: it may be mounted later. A `meter`, which is made for the configuration and outlives
// the stores, counts what they do.
Result<std::unique_ptr<Stores>> open_stores(const config::Config& config, Meter* meter = nullptr);

}  // namespace bellhop
