// Credentials from the endpoint that ECS, EKS (Pod Identity) and others give a container:
// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, else AWS_CONTAINER_CREDENTIALS_FULL_URI. The authorization is in
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, else AWS_CONTAINER_AUTHORIZATION_TOKEN. The rules are those of
// AWS's SDKs: over plain http bellhop asks only this host and the addresses of ECS and EKS, because elsewhere
// anybody could read the token and the keys.
#pragma once

#include <memory>

#include "daemon/claims/s3/plain_request.h"
#include "daemon/claims/s3/s3_credentials.h"
#include "daemon/claims/s3/s3_environment.h"

namespace bellhop {

// The URL to ask; empty when the environment names none. Error: a URL that must not be asked.
Result<std::string> container_credentials_url(const Environment& environment);

// Precondition: `url` is not empty.
std::unique_ptr<S3CredentialsSource> container_credentials(std::string url, const Environment& environment,
                                                           PlainRequests& requests);

}  // namespace bellhop
