#include "daemon/claims/filesystem/file_identity.h"

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace bellhop {

namespace {

int64_t ns(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

// A file's times are those of the kernel's last tick (some milliseconds), so a write within the tick of the
// one before leaves no trace. Where the last one is so recent, this waits for the next tick.
int identify(int fd, struct stat& status) {
  constexpr int64_t tick_ns_max = 10'000'000, pause_ns = 1'000'000;
  while (true) {
    if (fstat(fd, &status) != 0) return errno;
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    const int64_t ahead_ns = ns(status.st_ctim) - ns(now);
    // Farther ahead is another host's clock.
    if (ahead_ns < 0 || ahead_ns > tick_ns_max) return 0;
    const timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
  }
}

bool is_same_file(const struct stat& before, const struct stat& now) {
  return before.st_dev == now.st_dev && before.st_ino == now.st_ino && before.st_size == now.st_size &&
         ns(before.st_mtim) == ns(now.st_mtim) &&
         (ns(before.st_ctim) == ns(now.st_ctim) || now.st_nlink < before.st_nlink);
}

}  // namespace bellhop
