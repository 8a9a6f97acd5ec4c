#include "daemon/claims/payload_hash.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // chooses AVX2 or AVX-512 when it runs, where the machine has them
#else
#include <xxhash.h>
#endif

#include <new>

namespace bellhop {

PayloadHash::PayloadHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_);
}

PayloadHash::~PayloadHash() {
  XXH3_freeState(state_);
}

void PayloadHash::update(Bytes piece) {
  XXH3_128bits_update(state_, piece.data(), piece.size());
}

std::string PayloadHash::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : canonical.digest) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

}  // namespace bellhop
