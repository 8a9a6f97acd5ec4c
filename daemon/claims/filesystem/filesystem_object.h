// A verified object of a filesystem store, handed out piece by piece from the same open file. So what is sent
// is what was verified, even when retention takes the name away meanwhile.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_core.h"

namespace bellhop {

class FileObject : public LocalObject {
 public:
  // `verified`: how the file looked before the verified bytes were read (file_identity.h).
  FileObject(std::shared_ptr<FilesystemCore> core, std::shared_ptr<FileDescriptor> file, std::string key,
             const struct stat& verified)
      : core_(std::move(core)), file_(std::move(file)), key_(std::move(key)), verified_(verified) {}
  ~FileObject() override;

  uint64_t size_bytes() const override { return static_cast<uint64_t>(verified_.st_size); }
  void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
            std::function<void(Result<Piece>)> done) override;

 private:
  const std::shared_ptr<FilesystemCore> core_;
  std::shared_ptr<FileDescriptor> file_;
  const std::string key_;
  const struct stat verified_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // who dropped the object wants no answer
};

}  // namespace bellhop
