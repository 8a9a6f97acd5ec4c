// Credentials of the role of the EC2 instance that bellhop runs on, from its metadata service. Only version
// 2, which hands out a session token first: version 1 answers anybody who can make the host fetch a URL.
//
//   PUT /latest/api/token ─► GET .../security-credentials/ ─► GET .../security-credentials/ROLE
#pragma once

#include <memory>

#include "daemon/claims/s3/plain_request.h"
#include "daemon/claims/s3/s3_credentials.h"
#include "daemon/claims/s3/s3_environment.h"

namespace bellhop {

// Null: AWS_EC2_METADATA_DISABLED is true. The service is at AWS_EC2_METADATA_SERVICE_ENDPOINT, else at its
// address for AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE (IPv4, IPv6).
std::unique_ptr<S3CredentialsSource> instance_credentials(const Environment& environment,
                                                          PlainRequests& requests);

}  // namespace bellhop
