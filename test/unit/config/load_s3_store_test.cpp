// stores of type s3: what the keys mean, and what is wrong with a bad one.
#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

Loaded load_store(const std::string& keys) {
  return load_text("broker: { url: amqp://localhost }\nstores: { a: { type: s3, " + keys + " } }\n", "f");
}

S3Store good(const std::string& keys) {
  const Loaded loaded = load_store(keys);
  REQUIRE(loaded.errors.empty());
  return std::get<S3Store>(loaded.config.stores.at(0).kind);
}

// The error, without its place.
std::string bad(const std::string& keys) {
  const Loaded loaded = load_store(keys);
  REQUIRE(loaded.errors.size() == 1);
  const std::string& line = loaded.errors[0];
  return line.substr(line.find(": ") + 2);
}

}  // namespace

TEST_CASE("a bucket is enough, and the rest has its defaults", "[config][s3]") {
  const S3Store store = good("bucket: acme-claims");
  CHECK(store.bucket == "acme-claims");
  CHECK(store.endpoint.empty());
  CHECK(store.prefix.empty());
  CHECK(store.path_style);
  CHECK(store.sse == S3Store::Encryption::none);
  CHECK(store.timeout_ms == 30000);
  CHECK(store.retries == 5);
  CHECK(store.probe);
}

TEST_CASE("every key", "[config][s3]") {
  const S3Store store = good(
      "endpoint: 'https://s3.example:9000/', region: eu-west-1, bucket: b-1, prefix: orders/v1-, path_style: "
      "false, "
      "access_key: AK, secret_key: SK/+=, session_token: ST, sse: "
      "'aws:kms:arn:aws:kms:eu-west-1:1:key/ab-12', "
      "timeout: 5s, retries: 0, probe: false");
  CHECK(store.endpoint == "https://s3.example:9000");
  CHECK(store.region == "eu-west-1");
  CHECK(store.prefix == "orders/v1-");
  CHECK_FALSE(store.path_style);
  CHECK(store.access_key == "AK");
  CHECK(store.secret_key == "SK/+=");
  CHECK(store.session_token == "ST");
  CHECK(store.sse == S3Store::Encryption::kms);
  CHECK(store.kms_key_id == "arn:aws:kms:eu-west-1:1:key/ab-12");
  CHECK(store.timeout_ms == 5000);
  CHECK(store.retries == 0);
  CHECK_FALSE(store.probe);
}

TEST_CASE("encryption without a key of one's own", "[config][s3]") {
  CHECK(good("bucket: abc, sse: AES256").sse == S3Store::Encryption::aes256);
  CHECK(good("bucket: abc, sse: 'aws:kms'").kms_key_id.empty());
  for (const char* wrong : {"aes256", "aws:kms:", "aws:kms: x", "aws:kmsx", "aws"}) {
    INFO(wrong);
    CHECK(bad(std::string("bucket: abc, sse: '") + wrong + "'").find("stores.a.sse: ") == 0);
  }
}

TEST_CASE("a prefix that a URL or a signature would change is refused", "[config][s3]") {
  for (const char* prefix : {"../", "a/../b/", "a/./", "/a", "a//b", "a b/", "a?b", "a#b", "a%2Fb",
                             "\xc3\xa4/", "a\\\\b", "a\\nb"}) {
    INFO(prefix);
    CHECK(bad("bucket: abc, prefix: \"" + std::string(prefix) + "\"").find("stores.a.prefix: ") == 0);
  }
  for (const char* prefix : {"", "a", "a/", "a/b.c_d~e-f/", ".."}) {
    INFO(prefix);
    CHECK(good("bucket: abc, prefix: \"" + std::string(prefix) + "\"").prefix == prefix);
  }
}

TEST_CASE("endpoints that are none", "[config][s3]") {
  for (const char* endpoint : {"s3.example", "ftp://s3", "https://", "https://u:p@s3", "https://s3/path",
                               "https://s3?x", "http://s3:x", "http://a b"}) {
    INFO(endpoint);
    const std::string error = bad("bucket: abc, endpoint: '" + std::string(endpoint) + "'");
    CHECK(error.find("stores.a.endpoint: ") == 0);
    CHECK(error.find("u:p") == std::string::npos);
  }
  CHECK(bad("bucket: abc, path_style: false, endpoint: 'http://127.0.0.1:9000'")
            .find("stores.a.path_style: ") == 0);
}

TEST_CASE("half of a key pair is an error that shows no secret", "[config][s3]") {
  CHECK(bad("bucket: abc, access_key: AK").find("stores.a.secret_key: is empty while") == 0);
  const std::string error = bad("bucket: abc, access_key: '', secret_key: hush");
  CHECK(error.find("stores.a.access_key: is empty while") == 0);
  CHECK(error.find("hush") == std::string::npos);
  CHECK(bad("bucket: abc, session_token: hush").find("stores.a.session_token: ") == 0);
  CHECK(bad("bucket: abc, access_key: AK, secret_key: 'hush hush'").find("hush") == std::string::npos);
}

TEST_CASE("a bucket is required and has a bucket's name", "[config][s3]") {
  CHECK(bad("region: r").find("stores.a.bucket: is missing") == 0);
  for (const char* bucket : {"ab", "a/b", "..", "a..b", ".abc", "a b c"}) {
    INFO(bucket);
    CHECK(bad("bucket: '" + std::string(bucket) + "'").find("stores.a.bucket: ") == 0);
  }
}
