// `bellhop check FILE`: what a configuration file means, in words. It connects to nothing, unless it is told
// to look at the broker (check_broker.h).
#pragma once

#include <ostream>
#include <string>

namespace bellhop {

// Prints to `out` what the file means, defaults and inherited values filled in, and returns 0; or prints
// every error to `err`, one a line, and returns 2. Neither ever has a password in it; values of added headers
// are left out too, as they may come from a secret.
// With `at_broker` it also compares what the broker has with what bellhop would declare, and returns 1 when
// something differs or the broker cannot be asked.
int check(const std::string& file, bool at_broker, std::ostream& out, std::ostream& err);

}  // namespace bellhop
