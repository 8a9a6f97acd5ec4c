// Reads what the environment says about S3, as AWS's own tools do: variables, the shared files' places, the
// region, the file of authorities.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"

namespace bellhop {

// Null for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;

// Empty for one that is not set.
std::string variable(const Environment& environment, const char* name);

// AWS_PROFILE, else "default".
std::string aws_profile(const Environment& environment);
// AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials; empty: there is no HOME either.
std::string credentials_file(const Environment& environment);

// A key's value in a section of an INI file, as AWS's tools write it; nothing when it is not there.
std::optional<std::string> ini_value(std::string_view text, std::string_view section, std::string_view key);

// The first that is set: the configuration's, AWS_REGION, AWS_DEFAULT_REGION, the shared files', us-east-1.
std::string find_s3_region(const config::S3Store& store, const Environment& environment);
// The file of certificates that verifies https endpoints: AWS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE.
// Empty: the system's own.
std::string find_ca_bundle(const Environment& environment);

}  // namespace bellhop
