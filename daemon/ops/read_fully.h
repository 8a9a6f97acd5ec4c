// Reads a part of a file, however many calls that takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/result.h"

namespace bellhop {

// Blocking. Reads until `count` bytes are there or the file ends; returns how many. Error: a call failed, in
// errno's words.
Result<size_t> read_fully(int fd, uint64_t offset, uint8_t* into, size_t count);

}  // namespace bellhop
