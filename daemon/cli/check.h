// `bellhop check FILE`: what a configuration file means, in words, without connecting to anything.
#pragma once

#include <ostream>
#include <string>

namespace bellhop {

// Prints to `out` what the file means, defaults and inherited values filled in, and returns 0; or prints
// every error to `err`, one a line, and returns 2. Neither ever has a password in it; values of added headers
// are left out too, as they may come from a secret.
int check(const std::string& file, std::ostream& out, std::ostream& err);

}  // namespace bellhop
