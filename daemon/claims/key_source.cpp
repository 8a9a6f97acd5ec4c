#include "daemon/claims/key_source.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace bellhop {

namespace {

// Two bellhops on one directory must never issue the same key, so nothing weaker than the kernel's own seed
// will do.
std::array<uint64_t, 4> kernel_seed() {
  std::array<uint64_t, 4> seed{};
  ssize_t got = 0;
  do {
    got = getrandom(seed.data(), sizeof(seed), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(seed)))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return seed;
}

}  // namespace

KeySource::KeySource() : generator_(kernel_seed()) {}

std::string KeySource::next() {
  std::lock_guard lock(mutex_);
  return std::string(proto::view(generator_.next()));
}

}  // namespace bellhop
