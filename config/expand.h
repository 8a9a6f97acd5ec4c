// Expands ${NAME}, ${NAME:-default} and ${file:/path} in a scalar value. This comes after YAML was parsed, so
// a password may have any character in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/result.h"

namespace bellhop::config {

// - ${NAME}: the environment's value, an error when the variable is not set.
// - ${NAME:-default}: the default when the variable is not set or empty. It ends at the first `}`.
// - ${file:/path}: the file's content without one newline at its end, an error when it cannot be read.
// A `$` before anything but `{` is a dollar sign. The result is not expanded again. Errors name the variable
// or the file, never a value. `lacks_file` is set when it is a file that cannot be read.
Result<std::string> expand(std::string_view text, bool* lacks_file = nullptr);

// The paths of its ${file:...}.
std::vector<std::string> files_in(std::string_view text);

// The part of a value that stands in the file itself: the text around each ${...}, and the default inside.
// Empty when all of it comes from elsewhere.
std::string written_in_file(std::string_view text);

}  // namespace bellhop::config
