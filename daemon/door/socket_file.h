// SocketFile: the file of a Unix socket that bellhop listens on: made with its group and mode, and removed
// only while it is still the one that was made.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "config/config.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class SocketFile {
 public:
  struct Made;
  // A socket that listens there, non-blocking and close-on-exec. A leftover of a process that was killed is
  // replaced; anything else that is in the way is an error, and stays. Errors name the path and the remedy.
  static Result<Made> make(const config::UnixListen& listen, int backlog);

  // Removes the file if it is still the one that was made. To be called while the socket still listens: no
  // newer process can have replaced the file unnoticed.
  void remove() const;

 private:
  SocketFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  dev_t device_;
  ino_t inode_;
};

struct SocketFile::Made {
  FileDescriptor socket;
  SocketFile file;
};

}  // namespace bellhop
