// `bellhop sweep` of an S3 store: aborts multipart uploads that were never completed, and prints the
// lifecycle rule that would have the service do so by itself. A bucket's own rules are never changed.
#pragma once

#include <ostream>
#include <string>

#include "config/config.h"

namespace bellhop {

// Blocks. The exit code, as sweep()'s.
int sweep_s3(const std::string& name, const config::S3Store& store, uint64_t older_than_ms, bool dry_run,
             std::ostream& out, std::ostream& err);

}  // namespace bellhop
