#include "daemon/admin/tap_stream.h"

#include <algorithm>
#include <utility>

#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

constexpr std::chrono::seconds quiet_max{1};

}  // namespace

TapStream::~TapStream() {
  log_info("tap ends");
}

size_t TapStream::read(char* out, size_t bytes_max) {
  size_t bytes = 0;
  while (bytes < bytes_max) {
    if (rest_.empty() && !next_line()) break;
    const size_t taken = std::min(rest_.size(), bytes_max - bytes);
    std::copy_n(rest_.begin(), taken, out + bytes);
    rest_.erase(0, taken);
    bytes += taken;
  }
  if (bytes != 0) last_ = Clock::now();
  return bytes;
}

// What is missed came when the ring was full: its place is behind the lines that were in it.
bool TapStream::next_line() {
  if (const uint64_t missed = tap_->take_missed(); missed != 0) {
    if (missed_ == 0) before_missed_ = TapRing::lines_max;
    missed_ += missed;
  }
  const bool is_due = missed_ != 0 && before_missed_ == 0;
  if (!is_due && tap_->next(rest_)) {
    if (before_missed_ != 0) before_missed_--;
    rest_ += '\n';
    return true;
  }
  if (missed_ != 0) {
    rest_ = "{\"missed\":" + std::to_string(std::exchange(missed_, 0)) + "}\n";
    before_missed_ = 0;
    return true;
  }
  if (Clock::now() - last_ < quiet_max) return false;
  rest_ = "\n";
  return true;
}

}  // namespace bellhop
