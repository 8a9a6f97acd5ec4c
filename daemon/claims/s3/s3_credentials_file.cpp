#include "daemon/claims/s3/s3_credentials_file.h"

#include <sys/stat.h>

#include "config/read_file.h"

namespace bellhop {

namespace {

constexpr size_t file_bytes_max = 1 << 20;
constexpr uint64_t look_interval_ms = 1000;

}  // namespace

std::optional<S3CredentialsFile::Look> S3CredentialsFile::look() const {
  struct stat found {};
  if (stat(path_.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return Look{found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

Result<S3Credentials> S3CredentialsFile::read() {
  if (path_.empty()) return Error{"there is no HOME with a shared credentials file"};
  const std::string file = "the shared credentials file " + path_;
  seen_ = look();
  if (!seen_) return Error{file + " is not there"};
  const Result<std::string> text = config::read_file(path_, file_bytes_max);
  if (!text) return Error{file + " " + text.error()};
  S3Credentials found{ini_value(text.value(), section_, "aws_access_key_id").value_or(""),
                      ini_value(text.value(), section_, "aws_secret_access_key").value_or(""),
                      ini_value(text.value(), section_, "aws_session_token").value_or("")};
  if (found.access_key.empty() || found.secret_key.empty())
    return Error{file + " has none for profile '" + section_ + "'"};
  return found;
}

bool S3CredentialsFile::has_changed(uint64_t now_ms) {
  if (now_ms - looked_at_ms_ < look_interval_ms) return false;
  looked_at_ms_ = now_ms;
  const auto found = look();
  return found && found != seen_;
}

}  // namespace bellhop
