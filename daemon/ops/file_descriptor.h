// The owner of one file descriptor: who holds it closes it, on every way out.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace bellhop {

class FileDescriptor {
 public:
  // Takes over `fd`; negative: none.
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  // Closes what it had.
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const int fd = other.release();
    close();
    fd_ = fd;
    return *this;
  }
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Closes now. errno stays as it was: on an error path it still says what failed. Again is harmless.
  void close() {
    if (fd_ < 0) return;
    const int error = errno;
    ::close(std::exchange(fd_, -1));
    errno = error;
  }
  // Gives it away: the caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace bellhop
