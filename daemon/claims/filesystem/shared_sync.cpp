#include "daemon/claims/filesystem/shared_sync.h"

namespace bellhop {

namespace {
constexpr size_t running_max = 2;
}

Result<void> SharedSync::run(Place place, const std::function<Result<void>()>& sync) {
  std::unique_lock lock(mutex_);
  if (!gathering_ || gathering_->place != place)
    gathering_ = std::make_shared<Group>(Group{place, false, false, {}});
  const std::shared_ptr<Group> mine = gathering_;
  ++waiting_;
  changed_.wait(lock, [&] { return mine->is_done || (!mine->has_begun && running_ < running_max); });
  --waiting_;
  if (mine->is_done) return mine->outcome;

  ++running_;
  mine->has_begun = true;
  if (gathering_ == mine) gathering_.reset();  // who comes from now on has linked too late for this one
  lock.unlock();
  Result<void> outcome = sync();
  lock.lock();
  --running_;
  mine->is_done = true;
  mine->outcome = outcome;
  changed_.notify_all();
  return outcome;
}

size_t SharedSync::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

}  // namespace bellhop
