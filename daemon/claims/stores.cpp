#include "daemon/claims/stores.h"

namespace bellhop {

void Stores::close() {
  for (const auto& store : stores_) store->close();
}

ClaimStore* Stores::find(std::string_view name) const {
  for (const auto& store : stores_) {
    if (store->name() == name) return store.get();
  }
  return nullptr;
}

}  // namespace bellhop
