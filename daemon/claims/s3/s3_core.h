// What an S3 store shares with its uploads, fetches and objects: the address, the thread, the client, the
// bounds. They may outlive the store.
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "daemon/claims/key_source.h"
#include "daemon/claims/keys_under_way.h"
#include "daemon/claims/s3/curl_loop.h"
#include "daemon/claims/s3/s3_address.h"
#include "daemon/claims/s3/s3_client.h"
#include "daemon/claims/s3/s3_environment.h"
#include "daemon/ops/quota.h"

namespace bellhop {

// Payloads up to this size stay in memory while there is room. Larger ones go to scratch files.
inline constexpr uint64_t small_payload_bytes_max = uint64_t{1} << 20;

struct S3Core {
  // Errors: no credentials, no libcurl. Sends nothing yet.
  static Result<std::shared_ptr<S3Core>> open(const std::string& name, const config::S3Store& config,
                                              const Environment& environment);

  // Not the loop's thread, once. Blocking. Lets undos come to their end, for at most `patience_ms`; logs the
  // keys that stay behind after that; ends the thread.
  static void close(const std::shared_ptr<S3Core>& core, uint64_t patience_ms);

  S3Core(std::string store_name, config::S3Store store_config, S3Address store_address)
      : name(std::move(store_name)), config(std::move(store_config)), address(std::move(store_address)) {}

  const std::string name;
  const config::S3Store config;
  const S3Address address;
  KeySource keys;
  KeysUnderWay keys_under_way;
  // For payloads on their way in, in memory and in scratch files, and for those on their way out in scratch
  // files.
  const std::shared_ptr<Quota> memory = std::make_shared<Quota>(uint64_t{16} << 20);
  const std::shared_ptr<Quota> upload_scratch = std::make_shared<Quota>(uint64_t{4} << 30);
  const std::shared_ptr<Quota> fetch_scratch = std::make_shared<Quota>(uint64_t{4} << 30);
  std::unique_ptr<CurlLoop> loop;
  std::unique_ptr<S3Client> client;  // the loop's thread; null once the store has ended

  // Over plain http the signature covers the payload; https protects it itself.
  bool signs_payloads() const { return !address.is_https(); }

  // The loop's thread. Makes a call, to be started.
  std::shared_ptr<S3Call> call(std::string method, std::string url) const;
  // Gives a call a body in memory.
  void set_body(S3Call& call, std::string body) const;
  // Adds the checksum that goes with every object and every part; buckets with Object Lock refuse a PUT
  // without one. It is Content-MD5 and none of x-amz-checksum-*, because AWS, Ceph RGW, MinIO, R2, GCS and
  // s3rver all take it and compare it. Ceph 16 and s3rver ignore the newer ones, and GCS and R2 know only
  // some of them. Those that follow the body (trailers) need a chunked encoding that not all can read.
  void add_checksum(S3Request& request, Bytes md5) const;
  // Adds server-side encryption as configured, for requests that make an object.
  void add_encryption(S3Request& request) const;
  // Says to a person what went wrong: "store 'archive': bucket 'b' at ...".
  std::string problem(const S3Answer& answer, const std::string& method) const;
};

// Any thread. Names a key as under way, as long as the result lives.
std::shared_ptr<KeyUnderWay> key_under_way(const std::shared_ptr<S3Core>& core, std::string key);

// Any thread. Removes an object later. A failure is logged, and retention takes the orphan.
void remove_object(const std::shared_ptr<S3Core>& core, const std::string& key);

}  // namespace bellhop
