#include "daemon/claims/s3/s3_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <ctime>
#include <map>

#include "daemon/claims/s3/digest.h"

namespace bellhop {

namespace {

// HMAC (RFC 2104) over SHA-256.
Buffer hmac(Bytes key, std::string_view text) {
  Buffer out(EVP_MAX_MD_SIZE);
  unsigned int count = 0;
  const Bytes data = as_bytes(text);
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data.data(), data.size(), out.data(), &count);
  out.resize(count);
  return out;
}

std::string name_of(const std::string& header) {
  return header.substr(0, header.find(':'));
}

}  // namespace

bool needs_own_signature(const std::vector<std::string>& headers) {
  for (const std::string& one : headers) {
    for (const std::string& other : headers) {
      if (&one != &other && name_of(other).starts_with(name_of(one))) return true;
    }
  }
  return false;
}

std::string s3_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data();
}

std::vector<std::string> sign_s3(const S3Credentials& credentials, S3Signing signing) {
  const size_t host = signing.url.find("://") + 3;
  const size_t path = signing.url.find('/', host);
  const size_t query = signing.url.find('?', path);
  std::vector<std::string> added{"host: " + signing.url.substr(host, path - host),
                                 "x-amz-date: " + signing.time};
  signing.headers.insert(signing.headers.end(), added.begin(), added.end());
  std::map<std::string, std::string> sorted;
  for (const std::string& header : signing.headers)
    sorted[name_of(header)] = header.substr(header.find(": ") + 2);
  std::string lines, names;
  for (const auto& [name, value] : sorted) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = signing.method + "\n" + signing.url.substr(path, query - path) + "\n" +
                                (query == std::string::npos ? "" : signing.url.substr(query + 1)) + "\n" +
                                lines + "\n" + names + "\n" + signing.payload_sha256;
  const std::string date = signing.time.substr(0, 8);
  const std::string scope = date + "/" + signing.region + "/s3/aws4_request";
  const std::string text =
      "AWS4-HMAC-SHA256\n" + signing.time + "\n" + scope + "\n" + sha256_hex(as_bytes(canonical));
  const std::string secret = "AWS4" + credentials.secret_key;
  Buffer key = hmac(as_bytes(secret), date);
  for (const std::string_view part :
       {std::string_view(signing.region), std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac(key, part);
  added.push_back("authorization: AWS4-HMAC-SHA256 Credential=" + credentials.access_key + "/" + scope +
                  ",SignedHeaders=" + names + ",Signature=" + to_hex(hmac(key, text)));
  return added;
}

}  // namespace bellhop
