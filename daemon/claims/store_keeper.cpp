#include "daemon/claims/store_keeper.h"

#include <algorithm>
#include <iterator>

namespace bellhop {

void StoreKeeper::keep(const std::shared_ptr<ClaimStore>& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(stores_.begin(), stores_.end(), store) == stores_.end()) stores_.push_back(store);
}

bool StoreKeeper::has_unused() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(stores_.begin(), stores_.end(),
                     [](const auto& store) { return store.use_count() == 1; });
}

void StoreKeeper::close_unused() {
  std::vector<std::shared_ptr<ClaimStore>> unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Nobody can come to have it but through this list.
    const auto first = std::stable_partition(stores_.begin(), stores_.end(),
                                             [](const auto& store) { return store.use_count() > 1; });
    std::move(first, stores_.end(), std::back_inserter(unused));
    stores_.erase(first, stores_.end());
  }
  for (const auto& store : unused) store->close();
}

void StoreKeeper::close_all() {
  for (const auto& store : all()) store->close();
}

std::vector<std::shared_ptr<ClaimStore>> StoreKeeper::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stores_;
}

uint64_t StoreKeeper::scratch_bytes() const {
  uint64_t bytes = 0;
  for (const auto& store : all()) bytes += store->scratch_bytes();
  return bytes;
}

}  // namespace bellhop
