// `bellhop sweep STORE` removes what a store holds and nobody needs any more.
#pragma once

#include <optional>
#include <ostream>
#include <string>

namespace bellhop {

struct SweepOptions {
  std::optional<std::string> older_than;  // as configuration files write times
  bool dry_run = false;                   // only says what it would do
};

// Blocking. Returns the exit code: 0; 1 when the store could not be swept; 2 for a wrong configuration, an
// unknown store, or a kind of store that has nothing to sweep.
int sweep(const std::string& config_file, const std::string& store_name, const SweepOptions& options,
          std::ostream& out, std::ostream& err);

}  // namespace bellhop
