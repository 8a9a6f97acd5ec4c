// A payload of an S3 store that was verified, and is read again while it is handed over (reread_check.h).
#pragma once

#include <memory>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/s3/reread_check.h"
#include "daemon/claims/s3/s3_core.h"
#include "daemon/ops/scratch_file.h"

namespace bellhop {

class RereadObject : public LocalObject {
 public:
  uint64_t size_bytes() const override { return size_bytes_; }

 protected:
  RereadObject(std::shared_ptr<S3Core> core, std::string key, uint64_t size_bytes, std::string xxh128)
      : core_(std::move(core)),
        key_(std::move(key)),
        size_bytes_(size_bytes),
        check_(std::make_shared<RereadCheck>(size_bytes, std::move(xxh128))) {}

  const std::shared_ptr<S3Core> core_;
  const std::string key_;
  const uint64_t size_bytes_;
  const std::shared_ptr<RereadCheck> check_;                     // the store's thread
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // who dropped the object wants no answer
};

// In a scratch file.
class ScratchObject : public RereadObject {
 public:
  ScratchObject(std::shared_ptr<S3Core> core, std::shared_ptr<ScratchFile> file, std::string key,
                uint64_t size_bytes, std::string xxh128)
      : RereadObject(std::move(core), std::move(key), size_bytes, std::move(xxh128)),
        file_(std::move(file)) {}
  void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
            std::function<void(Result<Piece>)> done) override;

 private:
  const std::shared_ptr<ScratchFile> file_;
};

// At the service: a payload that found no room in a scratch file. It was verified once as it went by, and is
// read again, piece by piece, while it is handed over. Every piece is of the object that was verified
// (If-Match), and all of them together are what was verified.
class RemoteObject : public RereadObject {
 public:
  RemoteObject(std::shared_ptr<S3Core> core, std::string etag, std::string key, uint64_t size_bytes,
               std::string xxh128)
      : RereadObject(std::move(core), std::move(key), size_bytes, std::move(xxh128)),
        etag_(std::move(etag)) {}
  void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
            std::function<void(Result<Piece>)> done) override;

 private:
  const std::string etag_;
};

}  // namespace bellhop
