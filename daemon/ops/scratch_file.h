// A file without a name in the folder for temporary files ($TMPDIR, else /tmp): what is too large for memory
// on its way to or from an S3 store. It takes its room out of a bound that all of a store's share.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/ops/file_descriptor.h"
#include "daemon/ops/room.h"
#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop {

class ScratchFile {
 public:
  // Takes `room_bytes` until it is destroyed. Errors: the bound is reached, or no file can be made.
  static Result<std::unique_ptr<ScratchFile>> create(std::shared_ptr<Room> space, uint64_t room_bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // Blocking, on the page cache.
  Result<void> write(uint64_t offset, Bytes bytes);
  // What is there, at most `count`.
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) const;
  // The disk gets this part back, where the filesystem can do that.
  void drop(uint64_t offset, uint64_t bytes);

 private:
  ScratchFile(std::shared_ptr<Room> space, uint64_t room_bytes, FileDescriptor file)
      : space_(std::move(space)), room_bytes_(room_bytes), file_(std::move(file)) {}
  const std::shared_ptr<Room> space_;
  const uint64_t room_bytes_;
  FileDescriptor file_;
};

}  // namespace bellhop
