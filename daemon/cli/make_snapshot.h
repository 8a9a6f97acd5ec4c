// Makes what a configuration needs while it is in use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/ops/meter.h"
#include "daemon/snapshot/snapshot.h"
#include "proto/result.h"

namespace bellhop {

// `before` is the snapshot in use, null at the start; stores whose settings are the same are its own. Blocks
// as long as a store's place does. Error: what cannot be had, as open_stores() and TlsContext::open() say it.
Result<std::shared_ptr<const Snapshot>> make_snapshot(std::shared_ptr<const config::Config> config,
                                                      Meter& meter, const Snapshot* before);

// What differs and cannot change while bellhop runs: `FILE: KEY: what is wrong`, a line each.
std::vector<std::string> what_needs_restart(const config::Config& before, const config::Config& after,
                                            const std::string& file);

}  // namespace bellhop
