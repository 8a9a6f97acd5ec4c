// StoreKeeper: every store that is open. Those of the configuration in use, and removed ones that a message
// under way still needs. A store is closed here and nowhere else, because its end may take as long as the
// store stands still.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/claims/claim_store.h"

namespace bellhop {

// Any thread.
class StoreKeeper {
 public:
  // Again is harmless.
  void keep(const std::shared_ptr<ClaimStore>& store);
  // Those that nobody else has any more, each once. Close them, and say so: closing waits for what is under
  // way.
  std::vector<std::shared_ptr<ClaimStore>> take_unused();
  void closed(const std::shared_ptr<ClaimStore>& store);
  // Closes all that were not taken. Precondition: no session is left.
  void close_all();
  // Also those that are being closed.
  std::vector<std::shared_ptr<ClaimStore>> all() const;
  uint64_t scratch_bytes() const;  // of all

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ClaimStore>> stores_, taken_;  // under the mutex
};

}  // namespace bellhop
