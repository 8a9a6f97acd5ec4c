#include "daemon/claims/sha256.h"

#include <openssl/evp.h>

#include <new>

namespace bellhop {

void Sha256::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

void Sha256::update(Bytes piece) {
  EVP_DigestUpdate(context_.get(), piece.data(), piece.size());
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int count = 0;
  EVP_DigestFinal_ex(context_.get(), digest, &count);
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  return to_hex({digest, count});
}

std::string Sha256::of(Bytes bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(Bytes bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

}  // namespace bellhop
