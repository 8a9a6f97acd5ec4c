// What `bellhop status` prints: /status in words, the trouble first.
#pragma once

#include <string>

#include "proto/result.h"

namespace bellhop {

// `json`: what /status answered. An error: it is not what this version understands.
Result<std::string> status_text(const std::string& json);

}  // namespace bellhop
