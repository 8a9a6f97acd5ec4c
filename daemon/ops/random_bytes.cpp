#include "daemon/ops/random_bytes.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <string>

#include "daemon/ops/assert.h"

namespace bellhop {

void random_bytes(std::span<uint8_t> into) {
  // Not getrandom: it takes seven times as long, all of it in the kernel.
  if (RAND_bytes(into.data(), static_cast<int>(into.size())) == 1) return;
  char why[256] = {};
  ERR_error_string_n(ERR_get_error(), why, sizeof why);
  die(std::string("bellhop ends, OpenSSL has no random bytes for keys: ") + why);
}

}  // namespace bellhop
