// A payload on its way into an S3 store: in memory while it is small and there is room, else in a scratch
// file. So every attempt, of the whole or of a part, can begin again at its first byte, and memory stays
// bounded. (Keeping a payload in memory until the service acknowledges it would need a part's size for each
// upload that has begun. Uploads that wait for their clients could then hold all of the memory.)
//
// One thread: the store's.
#pragma once

#include <memory>

#include "daemon/claims/s3/s3_core.h"
#include "daemon/ops/scratch_file.h"

namespace bellhop {

class Spool {
 public:
  // `window_bytes`: the most that it keeps at one time of the `payload_bytes`. Error: no scratch file can be
  // had.
  static Result<std::shared_ptr<Spool>> create(const S3Core& core, uint64_t payload_bytes,
                                               uint64_t window_bytes);

  Result<void> append(Bytes piece);
  uint64_t size_bytes() const { return size_bytes_; }  // so far
  // Precondition: this part was not dropped. Returns how many bytes it read: fewer than `count` only at the
  // end of what is there.
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) const;
  // This part is not needed again.
  void drop(uint64_t offset, uint64_t bytes);

 private:
  Spool() = default;
  std::shared_ptr<Quota> memory_;
  QuotaShare share_;  // of memory_; empty: a file
  Buffer bytes_;
  std::unique_ptr<ScratchFile> file_;
  uint64_t size_bytes_ = 0;
};

// A piece of a spool as a request's body.
class SpoolBody : public S3Body {
 public:
  SpoolBody(std::shared_ptr<const Spool> spool, uint64_t offset, uint64_t size_bytes)
      : spool_(std::move(spool)), offset_(offset), size_bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) override;

 private:
  const std::shared_ptr<const Spool> spool_;
  const uint64_t offset_, size_bytes_;
};

}  // namespace bellhop
