// A small file's whole content.
#pragma once

#include <string>

#include "proto/result.h"

namespace bellhop::config {

// Only of a regular file: a FIFO is an error, and is not waited for. Errors read on from the file's name:
// "cannot be read: No such file or directory", "is larger than N bytes".
Result<std::string> read_file(const std::string& path, size_t bytes_max);

}  // namespace bellhop::config
