// Reads a small file whole.
#pragma once

#include <string>

#include "proto/result.h"

namespace bellhop::config {

// Blocking. Only a regular file: a FIFO is an error, and is not waited for. Errors continue the file's name:
// "cannot be read: No such file or directory", "is larger than N bytes".
Result<std::string> read_file(const std::string& path, size_t bytes_max);

}  // namespace bellhop::config
