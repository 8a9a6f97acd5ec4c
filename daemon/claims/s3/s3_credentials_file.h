// Credentials from the shared file of AWS's tools (profile AWS_PROFILE, else default). Whoever rotates them
// writes the file anew, so bellhop looks at its identity and times, at most once a second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "daemon/claims/s3/s3_credentials.h"
#include "daemon/claims/s3/s3_environment.h"

namespace bellhop {

class S3CredentialsFile {
 public:
  explicit S3CredentialsFile(const Environment& environment)
      : path_(credentials_file(environment)), section_(aws_profile(environment)) {}

  // Errors: no HOME, no file, no such profile, a profile without keys.
  Result<S3Credentials> read();
  // Whether the file has changed since the last read().
  bool has_changed(uint64_t now_ms);

 private:
  struct Look {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size_bytes = 0;
    time_t seconds = 0;
    long nanoseconds = 0;
    bool operator==(const Look&) const = default;
  };
  std::optional<Look> look() const;  // nothing: it is no regular file

  const std::string path_, section_;
  std::optional<Look> seen_;
  uint64_t looked_at_ms_ = 0;
};

}  // namespace bellhop
