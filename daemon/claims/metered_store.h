// MeteredStore: another store, with what it does counted (ops/store_meter.h). An upload that is given up
// counts for nothing, and so does a fetch that nobody waits for any more.
#pragma once

#include <memory>

#include "daemon/claims/claim_store.h"
#include "daemon/ops/store_meter.h"

namespace bellhop {

class MeteredStore : public ClaimStore {
 public:
  // `meter` outlives the store and all that it began.
  MeteredStore(std::unique_ptr<ClaimStore> store, StoreMeter& meter);

  std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) override;
  void remove(const std::string& key) override { store_->remove(key); }
  void prepare(bool is_new) override { store_->prepare(is_new); }
  void begin_upkeep() override { store_->begin_upkeep(); }
  void end_upkeep() override { store_->end_upkeep(); }
  void close() override { store_->close(); }
  std::vector<std::string> uploads_under_way() const override { return store_->uploads_under_way(); }
  uint64_t scratch_bytes() const override { return store_->scratch_bytes(); }

 private:
  void fetch_redeemable(FetchRequest request) override;

  const std::unique_ptr<ClaimStore> store_;
  StoreMeter& meter_;
};

}  // namespace bellhop
