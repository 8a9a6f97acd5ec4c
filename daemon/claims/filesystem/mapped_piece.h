// Maps a part of a file as it stands in the page cache, so that it goes to a socket without a copy of
// bellhop's.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/claims/claim_store.h"

namespace bellhop {

// Blocking, for a store's own threads. Maps the part and has every page of it read. Nothing when that is
// impossible (an old kernel, a filesystem without mappings, a file that ends before): read the part instead.
// Only the kernel may read the bytes: if the file shrinks meanwhile, a system call fails where a program
// would be killed.
std::optional<Piece> map_piece(int fd, uint64_t offset, size_t count);

}  // namespace bellhop
