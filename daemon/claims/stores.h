// The stores of one configuration by name, shared by all sessions. Immutable. cli/open_stores.h makes them. A
// store may serve several configurations, one after the other (claims/store_keeper.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "daemon/claims/claim_store.h"

namespace bellhop {

class Stores {
 public:
  // `fallback` is the name of one of `stores`, or empty.
  Stores(std::vector<std::shared_ptr<ClaimStore>> stores, std::string_view fallback)
      : stores_(std::move(stores)), fallback_(find(fallback)) {}

  // Null when there is none.
  std::shared_ptr<ClaimStore> find(std::string_view name) const;
  // claim_check.store, null when none is configured.
  const std::shared_ptr<ClaimStore>& fallback() const { return fallback_; }
  const std::vector<std::shared_ptr<ClaimStore>>& all() const { return stores_; }

 private:
  const std::vector<std::shared_ptr<ClaimStore>> stores_;
  const std::shared_ptr<ClaimStore> fallback_;
};

}  // namespace bellhop
