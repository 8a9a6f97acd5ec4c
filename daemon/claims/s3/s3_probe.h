// Finds out at start whether an S3 store can be used: writes, reads and removes a small object. It logs a
// failure and tries again, with backoff, until all goes well. bellhop serves meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/claims/s3/s3_core.h"

namespace bellhop {

// Any thread. Goes on by itself until it succeeds or the store ends.
void probe_until_it_works(const std::shared_ptr<S3Core>& core);

}  // namespace bellhop
