#include "daemon/ops/read_fully.h"

#include <unistd.h>

#include <cerrno>

#include "daemon/ops/errno_text.h"

namespace bellhop {

Result<size_t> read_fully(int fd, uint64_t offset, uint8_t* into, size_t count) {
  size_t have = 0;
  while (have < count) {
    const ssize_t got = pread(fd, into + have, count - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{errno_text(errno)};
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

}  // namespace bellhop
