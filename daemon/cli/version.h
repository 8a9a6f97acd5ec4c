// What `bellhop --version` says: what somebody needs to know who is told of a fault.
#pragma once

#include <string>
#include <string_view>

namespace bellhop {

// The first line is `bellhop X.Y.Z`. Then `key: value` lines: commit, compiler, linked libraries, libraries
// that are loaded when needed. These are loaded for their versions.
std::string version_text(std::string_view commit);

}  // namespace bellhop
