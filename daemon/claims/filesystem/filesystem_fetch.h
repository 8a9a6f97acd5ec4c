// Reads an object of a filesystem store: opens it, reads it once from end to end, and compares it with what
// the message says. Only then is it handed out (filesystem_object.h).
#pragma once

#include <memory>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_core.h"

namespace bellhop {

// The pass that verifies an object keeps it in memory up to this size.
inline constexpr uint64_t in_memory_bytes_max = uint64_t{1} << 20;

// Any thread. ClaimStore::fetch's contract. Precondition: proto::is_redeemable_key(request.key,
// KeyRule::any). The store's threads work in parts of some milliseconds each, so that others have a turn
// between two parts, however large the object is.
void fetch_object(const std::shared_ptr<FilesystemCore>& core, FetchRequest request);

}  // namespace bellhop
