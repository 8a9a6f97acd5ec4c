#include "daemon/door/amqp/spill_file.h"

#include <utility>

#include "daemon/claims/payload_hash.h"

namespace bellhop {

namespace {

std::string checksum_of(Bytes bytes) {
  PayloadHash hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace

std::shared_ptr<SpillFile> SpillFile::make(SpillSpace& space, uint64_t capacity_bytes) {
  // Even a close may wait.
  return {new SpillFile(space.quota, capacity_bytes), [thread = &space.thread](SpillFile* file) {
            thread->run(nullptr, Work::upkeep, [file] { delete file; });
          }};
}

std::optional<uint64_t> SpillFile::place(uint64_t bytes) {
  if (bytes > capacity_bytes_ - used_bytes_) return {};
  return std::exchange(used_bytes_, used_bytes_ + bytes);
}

Result<void> SpillFile::write(uint64_t offset, Bytes bytes) {
  if (file_ == nullptr) {
    auto created = ScratchFile::create(quota_, capacity_bytes_);
    if (!created) return Error{created.error()};
    file_ = std::move(created.value());
  }
  auto written = file_->write(offset, bytes);
  if (written) checksums_[offset] = checksum_of(bytes);
  return written;
}

Result<Buffer> SpillFile::read(uint64_t offset, size_t count) const {
  if (file_ == nullptr) return Error{"it was never written"};
  Buffer bytes(count);
  const auto got = file_->read(offset, bytes.data(), count);
  if (!got) return Error{got.error()};
  if (got.value() != count) return Error{"a scratch file is shorter than what was written to it"};
  const auto checksum = checksums_.find(offset);
  if (checksum == checksums_.end() || checksum->second != checksum_of(bytes))
    return Error{"a scratch file has other bytes than were written to it"};
  return bytes;
}

}  // namespace bellhop
