// Who bellhop is at an S3 service.
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>

#include "proto/result.h"

namespace bellhop {

struct S3Credentials {
  std::string access_key, secret_key;
  std::string session_token = {};              // empty: none
  std::optional<std::time_t> expires_at = {};  // seconds since 1970; nothing: they do not say
  bool operator==(const S3Credentials&) const = default;
};

// A place that credentials come from. Only the store's thread.
class S3CredentialsSource {
 public:
  virtual ~S3CredentialsSource() = default;
  // Calls `done` once, at once or later, unless the source was destroyed first. One fetch at a time. Errors
  // say where bellhop asked and what it was told, and show no secret.
  virtual void fetch(std::function<void(Result<S3Credentials>)> done) = 0;
};

}  // namespace bellhop
