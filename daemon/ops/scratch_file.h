// A file without a name in the folder for temporary files ($TMPDIR, else /tmp). It holds what is too large
// for memory on its way to or from an S3 store, or behind a held delivery. Its size counts against a quota.
// Blocking; one thread at a time.
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
  // Tries the folder with an empty file, which leaves nothing. Error: what create() will say.
  static Result<void> try_folder();
  // Takes `size_bytes_max` of `quota` until it is destroyed. Errors: the quota has less left, or no file can
  // be made.
  static Result<std::unique_ptr<ScratchFile>> create(std::shared_ptr<Quota> quota, uint64_t size_bytes_max);

  // Writes all of `bytes`, into the page cache. Error: the disk is full, or broken.
  Result<void> write(uint64_t offset, Bytes bytes);
  // Returns how many bytes it read: fewer than `count` only at the file's end.
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) const;
  // Gives this part back to the disk, where the filesystem can.
  void drop(uint64_t offset, uint64_t bytes);

 private:
  ScratchFile(std::shared_ptr<Quota> quota, QuotaShare share, FileDescriptor file)
      : quota_(std::move(quota)), share_(std::move(share)), file_(std::move(file)) {}
  std::shared_ptr<Quota> quota_;
  QuotaShare share_;
  FileDescriptor file_;
};

}  // namespace bellhop
