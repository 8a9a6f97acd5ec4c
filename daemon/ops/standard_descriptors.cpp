#include "daemon/ops/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace bellhop {

bool open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken. Without a /dev there is always a root, which takes no byte either.
    int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0) opened = ::open("/", O_RDONLY | O_DIRECTORY);
    if (opened != fd) {
      if (opened >= 0) ::close(opened);
      return false;
    }
  }
  return true;
}

}  // namespace bellhop
