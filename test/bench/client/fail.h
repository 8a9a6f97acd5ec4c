// How the bench client gives up: one line on stderr and exit code 1. It is a short-lived tool with nothing to
// clean up, and a measurement that went wrong in any way must not be printed, so every error ends the process
// where it is found.
#pragma once

#include <string>

namespace bellhop::bench {

[[noreturn]] void fail(const std::string& what);
// As fail(), with errno's text behind the message.
[[noreturn]] void fail_errno(const std::string& what);

}  // namespace bellhop::bench
