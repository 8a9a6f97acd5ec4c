// XXH3-128 of a payload, piece by piece: the checksum in the header bellhop-claim-xxh128 (proto/README.md,
// "Claim headers"). It protects against damage, not against an attacker.
#pragma once

#include <memory>
#include <string>

#include "proto/bytes.h"

struct XXH3_state_s;

namespace bellhop {

class PayloadHash {
 public:
  PayloadHash();
  ~PayloadHash();
  PayloadHash(const PayloadHash&) = delete;
  PayloadHash& operator=(const PayloadHash&) = delete;

  void update(Bytes piece);
  // The hash of all pieces so far: 32 lower-case hex digits in canonical byte order, as `xxhsum -H2` prints
  // it.
  std::string hex() const;

 private:
  XXH3_state_s* state_;
};

}  // namespace bellhop
