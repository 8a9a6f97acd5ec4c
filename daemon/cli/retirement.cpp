#include "daemon/cli/retirement.h"

#include <system_error>
#include <utility>

namespace bellhop {

void Retirement::look() {
  if (is_at_work_ || (controls_.empty() && !stores_.has_unused())) return;
  stop();
  is_at_work_ = true;
  try {
    // The declarations of a former configuration end with their owner.
    auto controls = std::make_shared<std::vector<std::unique_ptr<Control>>>(std::exchange(controls_, {}));
    thread_ = std::thread([this, controls = std::move(controls)]() mutable {
      controls.reset();
      stores_.close_unused();
      is_at_work_ = false;
    });
  } catch (const std::system_error&) {
    is_at_work_ = false;  // no thread can be had: the stores' turn comes with the next look
  }
}

void Retirement::stop() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace bellhop
