// Who bellhop is at an S3 service, and in which region: from the configuration, then the environment
// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION), then the
// shared files (AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, AWS_CONFIG_FILE or ~/.aws/config; profile
// AWS_PROFILE or default). A set of keys is taken whole from one place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "proto/result.h"

namespace bellhop {

struct S3Credentials {
  std::string access_key, secret_key;
  std::string session_token;  // empty: none
};

// What a key of a section says in an INI file as AWS's tools write it; nothing when it is not there.
std::optional<std::string> ini_value(std::string_view text, std::string_view section, std::string_view key);

// Null for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;

// Errors say where was looked, and show no secret.
Result<S3Credentials> find_s3_credentials(const config::S3Store& store, const Environment& environment);
std::string find_s3_region(const config::S3Store& store, const Environment& environment);
// The file of certificates that https endpoints are verified with: AWS_CA_BUNDLE, CURL_CA_BUNDLE or
// SSL_CERT_FILE; empty: the system's own.
std::string find_ca_bundle(const Environment& environment);

}  // namespace bellhop
