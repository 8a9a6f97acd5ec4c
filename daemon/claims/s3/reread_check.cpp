#include "daemon/claims/s3/reread_check.h"

#include <fmt/format.h>

namespace bellhop {

Result<void> RereadCheck::take(uint64_t offset, Bytes piece) {
  is_in_order_ = is_in_order_ && offset == taken_bytes_;
  hash_.update(piece);
  taken_bytes_ += piece.size();
  if (offset + piece.size() != size_bytes_) return {};
  if (!is_in_order_) return Error{"its pieces were not read in order, so they cannot be verified"};
  const std::string found = hash_.hex();
  if (found == xxh128_) return {};
  return Error{fmt::format("damaged: what was read again has the XXH3-128 {}, what was verified had {}",
                           found, xxh128_)};
}

}  // namespace bellhop
