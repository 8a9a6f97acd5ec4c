// Looks at an object of an S3 store: a HEAD.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/claims/object_look.h"
#include "daemon/claims/s3/s3_core.h"

namespace bellhop {

// Any thread. Precondition: proto::is_redeemable_key(key, KeyRule::any). `done` is called once, on the
// store's thread. Missing only when the service says NoSuchKey, as for a fetch.
void look_at_object(const std::shared_ptr<S3Core>& core, const std::string& key,
                    std::function<void(ObjectLook)> done);

}  // namespace bellhop
