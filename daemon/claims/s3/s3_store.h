// Payloads as objects of a bucket, one a claim, named prefix + key. Works with AWS S3, MinIO, Ceph RGW and
// others that speak the S3 API with Signature Version 4. All requests of a store go through one thread
// (curl_loop.h), so that its connections are shared by all sessions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/claims/claim_store.h"
#include "daemon/claims/s3/s3_core.h"

namespace bellhop {

class S3Store : public ClaimStore {
 public:
  // Once at start. A service that cannot be reached now, a missing bucket or a refused key is a warning in
  // the log. Error: no credentials at all.
  static Result<std::unique_ptr<S3Store>> open(const std::string& name, const config::S3Store& config,
                                               proto::KeyRule keys);
  // As close(), but waits at most a second. Uploads and objects may outlive the store.
  ~S3Store() override;

  std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) override;
  void remove(const std::string& key) override;
  void close() override;
  std::vector<std::string> uploads_under_way() const override { return core_->keys_under_way.all(); }
  uint64_t scratch_bytes() const override {
    return core_->upload_scratch->used_bytes() + core_->fetch_scratch->used_bytes();
  }

 private:
  S3Store(std::shared_ptr<S3Core> core, proto::KeyRule keys)
      : ClaimStore(core->name, keys), core_(std::move(core)) {}
  void fetch_redeemable(FetchRequest request) override;

  std::shared_ptr<S3Core> core_;
  bool is_closed_ = false;
};

}  // namespace bellhop
