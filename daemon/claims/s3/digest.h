// Digests that an S3 request carries: SHA-256 in its signature, MD5 as its checksum (Content-MD5, and the
// ETag that comes back).
#pragma once

#include <memory>
#include <string>

#include "proto/bytes.h"

struct evp_md_ctx_st;  // OpenSSL's
struct evp_md_st;

namespace bellhop {

class Digest {
 public:
  static Digest sha256();
  static Digest md5();

  void update(Bytes piece);
  // Returns the digest's bytes (32 of SHA-256, 16 of MD5), and starts anew.
  Buffer finish();

 private:
  explicit Digest(const evp_md_st* kind);
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  const evp_md_st* kind_;
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// 64 lower-case hex digits.
std::string sha256_hex(Bytes bytes);
Buffer md5_of(Bytes bytes);

// Lower-case hex digits, two a byte.
std::string to_hex(Bytes bytes);
// RFC 4648, with padding.
std::string to_base64(Bytes bytes);

}  // namespace bellhop
