// A file without a name in the folder for temporary files ($TMPDIR, else /tmp): what is too large for memory
// on its way to or from an S3 store. Its size counts against a quota.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/ops/file_descriptor.h"
#include "daemon/ops/quota.h"
#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop {

class ScratchFile {
 public:
  // Takes `size_bytes_max` of `quota` until it is destroyed. Errors: so much is not left, or no file can be
  // made.
  static Result<std::unique_ptr<ScratchFile>> create(std::shared_ptr<Quota> quota, uint64_t size_bytes_max);

  // Blocking, on the page cache.
  Result<void> write(uint64_t offset, Bytes bytes);
  // What is there, at most `count`.
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) const;
  // The disk gets this part back, where the filesystem can do that.
  void drop(uint64_t offset, uint64_t bytes);

 private:
  ScratchFile(std::shared_ptr<Quota> quota, QuotaShare share, FileDescriptor file)
      : quota_(std::move(quota)), share_(std::move(share)), file_(std::move(file)) {}
  std::shared_ptr<Quota> quota_;
  QuotaShare share_;
  FileDescriptor file_;
};

}  // namespace bellhop
