// `bellhop run`: the daemon in the foreground.
#pragma once

#include <string>

namespace bellhop {

// Serves until a signal ends it. Returns the exit code: 0 after a drain, 1 a failure at start, 2 a wrong
// configuration (written to stderr).
int run(const std::string& config_file);

}  // namespace bellhop
