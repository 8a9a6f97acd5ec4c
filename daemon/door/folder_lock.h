// The lock under which a listener looks at its socket's place and takes it: of two processes that find one
// stale socket, the second would else remove what the first has just bound, and both would run.
//
// It is flock(2) on the folder itself: no file of ours stays behind, it needs no right to write, and the
// kernel lets go of it when its holder dies.
#pragma once

#include <string>
#include <utility>

#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class FolderLock {
 public:
  // The folder of `path`. Waits while another holds it, a few seconds at most: then an error. Where a folder
  // cannot be locked (it is not there, may not be read, or its filesystem knows no locks) it goes on without.
  static Result<FolderLock> of(const std::string& path);

 private:
  explicit FolderLock(FileDescriptor folder) : folder_(std::move(folder)) {}
  FileDescriptor folder_;  // closed: there is no lock
};

}  // namespace bellhop
