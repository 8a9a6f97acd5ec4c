// Where objects of an S3 store are: URLs and queries as Signature Version 4 wants them (names escaped,
// parameters in order), because libcurl signs them as they stand.
//
//   path style   https://host/bucket/prefix+key      virtual host   https://bucket.host/prefix+key
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"

namespace bellhop {

// Escapes everything but letters, digits and "-._~" as %XX. With `keep_slashes` a '/' stays.
std::string uri_encode(std::string_view text, bool keep_slashes);

class S3Address {
 public:
  // `region` makes the endpoint when the configuration has none.
  S3Address(const config::S3Store& store, const std::string& region);

  const std::string& endpoint() const { return endpoint_; }
  const std::string& bucket() const { return bucket_; }
  const std::string& prefix() const { return prefix_; }
  bool is_https() const { return endpoint_.starts_with("https://"); }

  using Query = std::vector<std::pair<std::string, std::string>>;
  // The URL of the object prefix + key.
  std::string object_url(std::string_view key, const Query& query = {}) const;
  // The URL of an object by its whole name.
  std::string name_url(std::string_view name, const Query& query = {}) const;
  std::string bucket_url(const Query& query) const;

 private:
  std::string endpoint_, bucket_, prefix_;
  std::string root_;  // the bucket's URL, with a '/' at its end
};

}  // namespace bellhop
