#include "daemon/claims/stores.h"

#include <algorithm>

namespace bellhop {

std::shared_ptr<ClaimStore> Stores::find(std::string_view name) const {
  const auto found = std::find_if(stores_.begin(), stores_.end(),
                                  [name](const auto& store) { return store->name() == name; });
  return found == stores_.end() ? nullptr : *found;
}

}  // namespace bellhop
