#include "daemon/claims/key_source.h"

#include "daemon/ops/random_bytes.h"

namespace bellhop {

KeySource::KeySource() : generator_(random_bytes) {}

std::string KeySource::next() {
  std::lock_guard lock(mutex_);
  return std::string(proto::view(generator_.next()));
}

}  // namespace bellhop
