// Looks at an object of a filesystem store, and changes nothing: no marker is written, nothing is swept.
#pragma once

#include <string>

#include "daemon/claims/filesystem/store_directory.h"
#include "daemon/claims/object_look.h"

namespace bellhop {

// Precondition: proto::is_redeemable_key(key, KeyRule::any). Blocks. Missing only when the marker is there,
// as for a fetch.
ObjectLook look_at_object(const StorePlace& place, const std::string& key);

// XXH3-128 of the object as it is now, 32 hex digits. Same precondition. Blocks as long as it reads.
Result<std::string> hash_object(const StorePlace& place, const std::string& key);

}  // namespace bellhop
