#include "config/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bellhop::config {

namespace {

Error unreadable() {
  const int error = errno;
  std::string advice;
  if (error == ENOENT) advice = "; create or mount it first";
  if (error == EACCES) advice = "; let bellhop's user (uid " + std::to_string(::geteuid()) + ") read it";
  return Error{std::string("cannot be read: ") + std::strerror(error) + advice};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  // A name with a NUL in it would be another file's.
  if (path.find('\0') != std::string::npos) return Error{"cannot be read: its name has a NUL byte in it"};
  // Without O_NONBLOCK the open of a FIFO would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return unreadable();
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unreadable();
  if (S_ISDIR(info.st_mode)) return Error{"cannot be read: Is a directory"};
  // A pipe or a device may never end, or never begin.
  if (!S_ISREG(info.st_mode)) return Error{"is no regular file"};
  std::string content;
  char chunk[16384];
  while (true) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) return content;
    content.append(chunk, static_cast<size_t>(got));
    if (content.size() > bytes_max) return Error{"is larger than " + std::to_string(bytes_max) + " bytes"};
  }
}

}  // namespace bellhop::config
