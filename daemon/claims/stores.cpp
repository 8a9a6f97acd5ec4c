#include "daemon/claims/stores.h"

namespace bellhop {

void Stores::close() {
  for (const auto& store : stores_) store->close();
}

uint64_t Stores::scratch_bytes() const {
  uint64_t all = 0;
  for (const auto& store : stores_) all += store->scratch_bytes();
  return all;
}

ClaimStore* Stores::find(std::string_view name) const {
  for (const auto& store : stores_) {
    if (store->name() == name) return store.get();
  }
  return nullptr;
}

}  // namespace bellhop
