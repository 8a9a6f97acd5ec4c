// What an S3 store shares with its uploads, fetches and objects, which may outlive it: the place, the thread,
// the client, the bounds.
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

// Payloads up to this size stay in memory, while there is room; larger ones are in scratch files.
inline constexpr uint64_t small_payload_bytes_max = uint64_t{1} << 20;

struct S3Core {
  // Errors: no credentials, no libcurl. Nothing is sent yet.
  static Result<std::shared_ptr<S3Core>> open(const std::string& name, const config::S3Store& config,
                                              const Environment& environment);

  // Not the loop's thread, once. Lets undos come to their end, for so long at most (then it logs the keys
  // that stay behind), and ends the thread.
  static void close(const std::shared_ptr<S3Core>& core, uint64_t patience_ms);

  S3Core(std::string store_name, config::S3Store store_config, S3Address store_address)
      : name(std::move(store_name)), config(std::move(store_config)), address(std::move(store_address)) {}

  const std::string name;
  const config::S3Store config;
  const S3Address address;
  KeySource keys;
  KeysUnderWay keys_under_way;
  // Payloads on their way in, in memory and in scratch files; and those on their way out in scratch files.
  const std::shared_ptr<Quota> memory = std::make_shared<Quota>(uint64_t{16} << 20);
  const std::shared_ptr<Quota> upload_scratch = std::make_shared<Quota>(uint64_t{4} << 30);
  const std::shared_ptr<Quota> fetch_scratch = std::make_shared<Quota>(uint64_t{4} << 30);
  std::unique_ptr<CurlLoop> loop;
  std::unique_ptr<S3Client> client;  // the loop's thread; null once the store has ended

  // Over plain http what is sent is part of the signature; https protects it itself.
  bool signs_payloads() const { return !address.is_https(); }

  // The loop's thread. A call to be started.
  std::shared_ptr<S3Call> call(std::string method, std::string url) const;
  // Gives a call a body that is in memory.
  void set_body(S3Call& call, std::string body) const;
  // The checksum that goes with every object and every part. Buckets with Object Lock refuse a PUT without
  // one. It is Content-MD5 and none of x-amz-checksum-*, because it is the one that AWS, Ceph RGW, MinIO, R2,
  // GCS and s3rver all take and check: Ceph 16 and s3rver ignore the newer ones, GCS and R2 know but some of
  // them, and those that come behind the body (trailers) need a chunked encoding that not all can read.
  void add_checksum(S3Request& request, Bytes md5) const;
  // Server-side encryption as configured, for what makes an object.
  void add_encryption(S3Request& request) const;
  // What went wrong, for a person: "store 'archive': bucket 'b' at ...".
  std::string problem(const S3Answer& answer, const std::string& method) const;
};

// Names a key as under way, as long as the result lives.
std::shared_ptr<KeyUnderWay> key_under_way(const std::shared_ptr<S3Core>& core, std::string key);

// Any thread. A failure is logged: retention takes the orphan.
void remove_object(const std::shared_ptr<S3Core>& core, const std::string& key);

}  // namespace bellhop
