// Reads credentials from the JSON with which the container's and the instance's services answer.
#pragma once

#include <string>

#include "daemon/claims/s3/s3_answer.h"
#include "daemon/claims/s3/s3_credentials.h"

namespace bellhop {

// Reads {"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ..., "Expiration": "2026-11-30T12:00:00Z"}.
// Errors show only the service's own code and message.
Result<S3Credentials> read_json_credentials(std::string_view json);

// Says to a person what an answer means that is no success.
std::string json_words(const S3Answer& answer);

}  // namespace bellhop
