// Reading a part of a file, however many calls it takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/result.h"

namespace bellhop {

// Blocking. Reads until `count` bytes are there, the file ends (fewer are returned) or a call fails (an
// error).
Result<size_t> read_fully(int fd, uint64_t offset, uint8_t* into, size_t count);

}  // namespace bellhop
