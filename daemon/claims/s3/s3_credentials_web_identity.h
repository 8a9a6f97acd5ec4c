// Credentials for a pod's token (EKS's IAM roles for service accounts, and others):
// AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME. AssumeRoleWithWebIdentity exchanges the
// token, at the region's STS or at AWS_ENDPOINT_URL_STS.
#pragma once

#include <memory>

#include "daemon/claims/s3/plain_request.h"
#include "daemon/claims/s3/s3_credentials.h"
#include "daemon/claims/s3/s3_environment.h"

namespace bellhop {

// Null: the environment names no token file and no role.
std::unique_ptr<S3CredentialsSource> web_identity_credentials(const Environment& environment,
                                                              const std::string& region,
                                                              PlainRequests& requests);

std::string sts_endpoint(const Environment& environment, const std::string& region);
Result<S3Credentials> read_web_identity_answer(std::string_view xml);

}  // namespace bellhop
