// Credentials as the container's and the instance's services answer with them, in JSON.
#pragma once

#include <string>

#include "daemon/claims/s3/s3_answer.h"
#include "daemon/claims/s3/s3_credentials.h"

namespace bellhop {

// {"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ..., "Expiration": "2026-11-30T12:00:00Z"}. Errors
// show nothing of it but what the service calls its own code and message.
Result<S3Credentials> read_json_credentials(std::string_view json);

// What an answer that is no success says, for a person.
std::string json_words(const S3Answer& answer);

}  // namespace bellhop
