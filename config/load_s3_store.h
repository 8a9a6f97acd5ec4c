// stores.NAME with `type: s3`.
#pragma once

#include <string_view>

#include "config/config.h"
#include "config/reader.h"
#include "proto/result.h"

namespace bellhop::config {

// Reports what is wrong, and keeps the defaults for it. `type` is a known key already.
S3Store read_s3(Section& section);

// Allows http://host and https://host:port, without user, path or query.
Result<void> check_s3_endpoint(std::string_view endpoint);

}  // namespace bellhop::config
