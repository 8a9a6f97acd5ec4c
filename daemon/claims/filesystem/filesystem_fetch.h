// Reading an object of a filesystem store: open it, read it once from end to end, and compare it with what
// the message says. Only then is it handed out (filesystem_object.h).
#pragma once

#include <memory>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_core.h"

namespace bellhop {

// Objects up to this size are kept in memory by the pass that verifies them.
inline constexpr uint64_t in_memory_bytes_max = uint64_t{1} << 20;

// ClaimStore::fetch's contract. Any thread. Precondition: proto::is_redeemable_key(request.key,
// KeyRule::any). The work is done on the store's threads, in parts of some milliseconds each: whoever else
// waits for them has a turn between two parts, however large the object is.
void fetch_object(const std::shared_ptr<FilesystemCore>& core, FetchRequest request);

}  // namespace bellhop
