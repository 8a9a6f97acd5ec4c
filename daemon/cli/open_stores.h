// Makes the stores that a configuration names: the one place that knows every kind.
#pragma once

#include <memory>

#include "config/config.h"
#include "daemon/claims/stores.h"
#include "daemon/ops/meter.h"
#include "proto/result.h"

namespace bellhop {

// What was made of the configuration before.
struct StoresBefore {
  const config::Config& config;
  const Stores& stores;
};

// Makes every configured store, or takes one of `before` whose settings are the same. Blocks as long as the
// filesystem does. Their upkeep has not begun. Errors name the store: a path that is no directory, a group
// that does not exist. A directory that is missing or not writable now is only a warning in the log: it may
// be mounted later. A `meter`, which outlives the stores, counts what they do, and gets the configuration's
// names.
Result<std::unique_ptr<Stores>> open_stores(const config::Config& config, Meter* meter = nullptr,
                                            const StoresBefore* before = nullptr);

}  // namespace bellhop
