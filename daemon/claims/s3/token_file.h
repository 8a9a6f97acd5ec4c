// A file with a token that somebody else renews (a pod's identity).
#pragma once

#include <string>

#include "proto/result.h"

namespace bellhop {

// Its text without blanks around it. Errors: no regular file, none that can be read, an empty one.
Result<std::string> read_token(const std::string& path);

}  // namespace bellhop
