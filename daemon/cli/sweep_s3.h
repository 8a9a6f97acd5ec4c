// `bellhop sweep` of an S3 store: aborts multipart uploads that were never completed, and prints the
// lifecycle rule with which the service does so itself. It never changes a bucket's own rules.
#pragma once

#include <ostream>
#include <string>

#include "config/config.h"

namespace bellhop {

// Blocking. Returns sweep()'s exit code.
int sweep_s3(const std::string& name, const config::S3Store& store, uint64_t older_than_ms, bool dry_run,
             std::ostream& out, std::ostream& err);

}  // namespace bellhop
