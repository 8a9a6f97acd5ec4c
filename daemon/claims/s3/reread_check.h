// Verifies a payload a second time, piece by piece, while it is handed over: it is read again from a scratch
// file or from the service. Neither is to be believed twice: a disk may lose what it took, and a service or a
// proxy may serve other bytes under the same ETag.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/claims/payload_hash.h"
#include "proto/result.h"

namespace bellhop {

class RereadCheck {
 public:
  // `xxh128`: of the payload as it was verified.
  RereadCheck(uint64_t size_bytes, std::string xxh128)
      : size_bytes_(size_bytes), xxh128_(std::move(xxh128)) {}

  // One thread. Takes each piece, in order from the first byte. Only the last one can give an error: all
  // pieces together are not the payload, so do not hand it over.
  Result<void> take(uint64_t offset, Bytes piece);

 private:
  const uint64_t size_bytes_;
  const std::string xxh128_;
  PayloadHash hash_;
  uint64_t taken_bytes_ = 0;
  bool is_in_order_ = true;
};

}  // namespace bellhop
