// `bellhop check FILE` says in words what a configuration file means. It connects to nothing, unless it is
// told to look at the broker (check_broker.h).
#pragma once

#include <ostream>
#include <string>

namespace bellhop {

// Prints to `out` what the file means, with defaults and inherited values filled in, and returns 0. Or prints
// every error to `err`, one a line, and returns 2. It prints no password, and no value of an added header,
// which may come from a secret. With `at_broker` it also compares the broker with what bellhop would declare,
// and returns 1 when something differs or the broker cannot be asked.
int check(const std::string& file, bool at_broker, std::ostream& out, std::ostream& err);

}  // namespace bellhop
