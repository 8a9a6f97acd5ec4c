// All configured stores by name, made once at start and shared by all sessions. cli/open_stores.h makes them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "daemon/claims/claim_store.h"

namespace bellhop {

class Stores {
 public:
  // `fallback` is the name of one of `stores`, or empty.
  Stores(std::vector<std::unique_ptr<ClaimStore>> stores, std::string_view fallback)
      : stores_(std::move(stores)), fallback_(find(fallback)) {}

  ClaimStore* find(std::string_view name) const;      // null when there is none
  ClaimStore* fallback() const { return fallback_; }  // claim_check.store, null when none is configured
  const std::vector<std::unique_ptr<ClaimStore>>& all() const { return stores_; }
  // Any thread. In scratch files of all stores.
  uint64_t scratch_bytes() const;
  // Closes every store, one after the other. Waits for what is under way there, so it may take as long as a
  // store stands still. Precondition: no session is left.
  void close();

 private:
  const std::vector<std::unique_ptr<ClaimStore>> stores_;
  ClaimStore* const fallback_;
};

}  // namespace bellhop
