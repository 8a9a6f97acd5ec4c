#include "daemon/claims/s3/digest.h"

#include <openssl/evp.h>

#include <new>

namespace bellhop {

namespace {

Buffer digest_of(Digest digest, Bytes bytes) {
  digest.update(bytes);
  return digest.finish();
}

}  // namespace

void Digest::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

Digest::Digest(const EVP_MD* kind) : kind_(kind), context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), kind_, nullptr) != 1) throw std::bad_alloc();
}

Digest Digest::sha256() {
  return Digest(EVP_sha256());
}

Digest Digest::md5() {
  return Digest(EVP_md5());
}

void Digest::update(Bytes piece) {
  EVP_DigestUpdate(context_.get(), piece.data(), piece.size());
}

Buffer Digest::finish() {
  Buffer out(EVP_MAX_MD_SIZE);
  unsigned int count = 0;
  EVP_DigestFinal_ex(context_.get(), out.data(), &count);
  EVP_DigestInit_ex(context_.get(), kind_, nullptr);
  out.resize(count);
  return out;
}

std::string sha256_hex(Bytes bytes) {
  return to_hex(digest_of(Digest::sha256(), bytes));
}

Buffer md5_of(Bytes bytes) {
  return digest_of(Digest::md5(), bytes);
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

std::string to_base64(Bytes bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                  static_cast<int>(bytes.size()));
  text.pop_back();  // the zero that OpenSSL puts behind it
  return text;
}

}  // namespace bellhop
