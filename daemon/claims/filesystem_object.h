// Reading an object of a filesystem store: open, verify, and then hand out piece by piece from the same open
// file, so that what was verified is what is sent even when retention takes the name away meanwhile.
#pragma once

#include <memory>
#include <string>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem_core.h"

namespace bellhop {

// Objects up to this size are kept in memory by the pass that verifies them.
inline constexpr uint64_t in_memory_bytes_max = uint64_t{1} << 20;

// Blocking: for a pool thread. Opens the object O_NOFOLLOW, demands a regular file, reads it once from end to
// end, and compares size and checksum with what the message says. Failures by daemon/claims/README.md,
// "Errors". Ends early, as unavailable, when `wanted` has expired.
FetchResult fetch_object(const std::shared_ptr<FilesystemCore>& core, const std::string& key,
                         const Expected& expected, const std::weak_ptr<const void>& wanted);

}  // namespace bellhop
