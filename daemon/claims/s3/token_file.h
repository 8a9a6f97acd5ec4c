// Reads a file with a token that somebody else renews (a pod's identity).
#pragma once

#include <string>

#include "proto/result.h"

namespace bellhop {

// The file's text, without blanks around it. Errors: it is no regular file, cannot be read, or is empty.
Result<std::string> read_token(const std::string& path);

}  // namespace bellhop
