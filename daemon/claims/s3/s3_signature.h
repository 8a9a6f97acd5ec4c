// Signs the requests that libcurl 7.88 signs wrongly (Signature Version 4). libcurl puts a header whose name
// begins with another's (x-amz-server-side-encryption-aws-kms-key-id) before that other one. libcurl signs
// all other requests.
#pragma once

#include <string>
#include <vector>

#include "daemon/claims/s3/s3_credentials.h"

namespace bellhop {

struct S3Signing {
  std::string method, url;  // path escaped, query in order
  std::vector<std::string>
      headers;                 // "name: value", names in lower case; all are signed, and host and x-amz-date
  std::string payload_sha256;  // or UNSIGNED-PAYLOAD
  std::string time;            // 20261130T120000Z
  std::string region;
};

// Returns the headers to add: host, x-amz-date, authorization.
std::vector<std::string> sign_s3(const S3Credentials& credentials, S3Signing signing);

// Whether libcurl would put these headers into the wrong order.
bool needs_own_signature(const std::vector<std::string>& headers);

// The time now, as a signature has it.
std::string s3_time_now();

}  // namespace bellhop
