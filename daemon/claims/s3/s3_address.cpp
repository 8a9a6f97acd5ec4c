#include "daemon/claims/s3/s3_address.h"

#include <algorithm>

namespace bellhop {

namespace {

std::string with_query(std::string url, S3Address::Query query) {
  std::sort(query.begin(), query.end());
  char separator = '?';
  for (const auto& [name, value] : query) {
    url += separator;
    url += uri_encode(name, false) + "=" + uri_encode(value, false);
    separator = '&';
  }
  return url;
}

}  // namespace

std::string uri_encode(std::string_view text, bool keep_slashes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slashes && c == '/');
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

S3Address::S3Address(const config::S3Store& store, const std::string& region)
    : endpoint_(store.endpoint.empty() ? "https://s3." + region + ".amazonaws.com" : store.endpoint),
      bucket_(store.bucket),
      prefix_(store.prefix) {
  if (store.path_style) {
    root_ = endpoint_ + "/" + bucket_ + "/";
  } else {
    const size_t host = endpoint_.find("://") + 3;
    root_ = endpoint_.substr(0, host) + bucket_ + "." + endpoint_.substr(host) + "/";
  }
}

std::string S3Address::object_url(std::string_view key, const Query& query) const {
  return name_url(prefix_ + std::string(key), query);
}

std::string S3Address::name_url(std::string_view name, const Query& query) const {
  return with_query(root_ + uri_encode(name, true), query);
}

std::string S3Address::bucket_url(const Query& query) const {
  return with_query(root_, query);
}

}  // namespace bellhop
