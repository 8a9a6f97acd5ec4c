// What an operator should know about a configuration that is put to use.
#pragma once

#include "config/config.h"

namespace bellhop {

// Logs a line each.
void tell_warnings(const config::Config& config);

}  // namespace bellhop
