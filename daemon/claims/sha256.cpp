#include "daemon/claims/sha256.h"

#include <new>

namespace bellhop {

Sha256::Sha256(const CurlLibrary& library) : library_(library), context_(library.md_ctx_new()) {
  if (context_ == nullptr || library.digest_init(context_, library.sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

Sha256::~Sha256() {
  library_.md_ctx_free(context_);
}

void Sha256::update(Bytes piece) {
  library_.digest_update(context_, piece.data(), piece.size());
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int count = 0;
  library_.digest_final(context_, digest, &count);
  library_.digest_init(context_, library_.sha256(), nullptr);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int at = 0; at < count; ++at) {
    text.push_back(digits[digest[at] >> 4]);
    text.push_back(digits[digest[at] & 15]);
  }
  return text;
}

std::string Sha256::of(const CurlLibrary& library, Bytes bytes) {
  Sha256 hash(library);
  hash.update(bytes);
  return hash.finish();
}

}  // namespace bellhop
