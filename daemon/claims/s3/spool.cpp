#include "daemon/claims/s3/spool.h"

#include <algorithm>

namespace bellhop {

Result<std::shared_ptr<Spool>> Spool::create(const S3Core& core, uint64_t payload_bytes,
                                             uint64_t window_bytes) {
  std::shared_ptr<Spool> spool(new Spool);
  spool->memory_ = core.memory;
  if (payload_bytes <= small_payload_bytes_max) spool->share_ = QuotaShare(*core.memory, payload_bytes);
  if (spool->share_) {
    spool->bytes_.reserve(static_cast<size_t>(payload_bytes));
    return spool;
  }
  auto file = ScratchFile::create(core.upload_scratch, std::min(payload_bytes, window_bytes));
  if (!file) return Error{file.error()};
  spool->file_ = std::move(file.value());
  return spool;
}

Result<void> Spool::append(Bytes piece) {
  if (file_) {
    if (auto written = file_->write(size_bytes_, piece); !written) return written;
  } else {
    put(bytes_, piece);
  }
  size_bytes_ += piece.size();
  return {};
}

Result<size_t> Spool::read(uint64_t offset, uint8_t* into, size_t count) const {
  count = static_cast<size_t>(std::min<uint64_t>(count, size_bytes_ - std::min(offset, size_bytes_)));
  if (file_) return file_->read(offset, into, count);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, into);
  return count;
}

void Spool::drop(uint64_t offset, uint64_t bytes) {
  if (file_) file_->drop(offset, bytes);
}

Result<size_t> SpoolBody::read(uint64_t offset, uint8_t* into, size_t count) {
  count = static_cast<size_t>(std::min<uint64_t>(count, size_bytes_ - offset));
  return spool_->read(offset_ + offset, into, count);
}

}  // namespace bellhop
