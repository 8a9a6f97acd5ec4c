// SHA-256 of what an S3 request sends, as its signature names it.
#pragma once

#include <string>

#include "daemon/claims/curl_library.h"
#include "proto/bytes.h"

namespace bellhop {

class Sha256 {
 public:
  explicit Sha256(const CurlLibrary& library);
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(Bytes piece);
  // 64 lower-case hex digits; then it starts anew.
  std::string finish();

  static std::string of(const CurlLibrary& library, Bytes bytes);

 private:
  const CurlLibrary& library_;
  EVP_MD_CTX* context_;
};

}  // namespace bellhop
