#include "daemon/door/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace bellhop {

namespace {

constexpr std::chrono::seconds wait_max{5};
constexpr std::chrono::milliseconds pause{10};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<FolderLock> FolderLock::of(const std::string& path) {
  const std::string folder = folder_of(path);
  FolderLock lock(FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!lock.folder_.is_open()) return lock;
  const auto deadline = std::chrono::steady_clock::now() + wait_max;
  while (::flock(lock.folder_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (std::chrono::steady_clock::now() >= deadline)
      return Error{folder + ": another process holds the folder's lock (flock); end it and start again"};
    std::this_thread::sleep_for(pause);
  }
  return lock;
}

}  // namespace bellhop
