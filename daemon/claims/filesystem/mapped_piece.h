// A part of a file as it stands in the page cache, so that it goes to a socket without a copy of ours.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/claims/claim_store.h"

namespace bellhop {

// Maps the part and has every page of it read, which blocks: for a store's own threads. Nothing when that
// cannot be had (an old kernel, a filesystem without mappings, a file that ends before): read it instead.
// Only the kernel may read the bytes: should the file shrink meanwhile, a system call fails where a program
// would be killed.
std::optional<Piece> map_piece(int fd, uint64_t offset, size_t count);

}  // namespace bellhop
