// All configured stores by name, made once at start and shared by all sessions.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "daemon/claims/claim_store.h"

namespace bellhop {

class Stores {
 public:
  // Makes every configured store. Errors name the store: a path that is no directory, a group that does not
  // exist, ... A directory that is not there or not writable now is no error but a warning in the log: it may
  // be mounted later.
  static Result<std::unique_ptr<Stores>> open(const config::Config& config);

  ClaimStore* find(std::string_view name) const;      // null when there is none
  ClaimStore* fallback() const { return fallback_; }  // claim_check.store, null when none is configured
  const std::vector<std::unique_ptr<ClaimStore>>& all() const { return stores_; }
  // Every store, in turn: what is under way there is waited for, so this may take as long as a store stands
  // still. No session may be left.
  void close();

 private:
  std::vector<std::unique_ptr<ClaimStore>> stores_;
  ClaimStore* fallback_ = nullptr;
};

}  // namespace bellhop
