// `bellhop run`: the daemon in the foreground.
#pragma once

#include <string>

namespace bellhop {

// Serves until a signal ends it. Returns the exit code: 0 after a drain; 1 when something is not there that
// may come, a file of the configuration too; 2 when a restart cannot help: what is wrong is the
// configuration's text, or how bellhop was started. All that is wrong with files is written to stderr.
int run(const std::string& config_file);

}  // namespace bellhop
