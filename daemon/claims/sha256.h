// SHA-256 of what an S3 request sends, as its signature names it.
#pragma once

#include <memory>
#include <string>

#include "proto/bytes.h"

struct evp_md_ctx_st;  // OpenSSL's

namespace bellhop {

class Sha256 {
 public:
  Sha256();

  void update(Bytes piece);
  // 64 lower-case hex digits; then it starts anew.
  std::string finish();

  static std::string of(Bytes bytes);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Lower-case digits, two a byte.
std::string to_hex(Bytes bytes);

}  // namespace bellhop
