// A payload that was verified once and is now read again, piece by piece, while it is handed over: from a
// scratch file, or from the service itself. Neither is to be believed a second time (a disk that lost what it
// had taken, a service or proxy that serves other bytes under the same ETag), so the checksum goes along.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/claims/payload_hash.h"
#include "proto/result.h"

namespace bellhop {

class RereadCheck {
 public:
  // `xxh128` is that of the payload as it was verified.
  RereadCheck(uint64_t size_bytes, std::string xxh128)
      : size_bytes_(size_bytes), xxh128_(std::move(xxh128)) {}

  // One thread. Each piece, in order from the first byte. An error comes with the last one: it must not be
  // handed over, because all of them together are not the payload.
  Result<void> take(uint64_t offset, Bytes piece);

 private:
  const uint64_t size_bytes_;
  const std::string xxh128_;
  PayloadHash hash_;
  uint64_t taken_bytes_ = 0;
  bool is_in_order_ = true;
};

}  // namespace bellhop
