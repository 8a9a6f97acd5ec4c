#include "daemon/claims/store_keeper.h"

#include <algorithm>

namespace bellhop {

void StoreKeeper::keep(const std::shared_ptr<ClaimStore>& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(stores_.begin(), stores_.end(), store) == stores_.end()) stores_.push_back(store);
}

std::vector<std::shared_ptr<ClaimStore>> StoreKeeper::take_unused() {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Nobody can come to have one but through this list.
  const auto first = std::stable_partition(stores_.begin(), stores_.end(),
                                           [](const auto& store) { return store.use_count() > 1; });
  std::vector<std::shared_ptr<ClaimStore>> unused(first, stores_.end());
  taken_.insert(taken_.end(), first, stores_.end());
  stores_.erase(first, stores_.end());
  return unused;
}

void StoreKeeper::closed(const std::shared_ptr<ClaimStore>& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(taken_, store);
}

void StoreKeeper::close_all() {
  std::vector<std::shared_ptr<ClaimStore>> stores;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stores = stores_;
  }
  for (const auto& store : stores) store->close();
}

std::vector<std::shared_ptr<ClaimStore>> StoreKeeper::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<ClaimStore>> stores = stores_;
  stores.insert(stores.end(), taken_.begin(), taken_.end());
  return stores;
}

uint64_t StoreKeeper::scratch_bytes() const {
  uint64_t bytes = 0;
  for (const auto& store : all()) bytes += store->scratch_bytes();
  return bytes;
}

}  // namespace bellhop
