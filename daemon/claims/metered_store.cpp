#include "daemon/claims/metered_store.h"

#include <chrono>
#include <utility>

namespace bellhop {

namespace {

using Clock = std::chrono::steady_clock;

uint64_t ms_since(Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count());
}

StoreResult result_of(const FetchResult& result) {
  if (result.object != nullptr) return StoreResult::ok;
  switch (result.failure.kind) {
    case FetchFailure::Kind::corrupt:
      return StoreResult::corrupt;
    case FetchFailure::Kind::unavailable:
      return StoreResult::unavailable;
    default:
      return StoreResult::missing;  // a key that it never issued is not there either
  }
}

// How long is counted from the last piece: the client's own pace is not the store's.
class MeteredUpload : public Upload {
 public:
  MeteredUpload(std::unique_ptr<Upload> upload, StoreMeter& meter)
      : upload_(std::move(upload)), meter_(meter) {}

  void write(Buffer piece, std::function<void(size_t bytes)> written) override {
    upload_->write(std::move(piece), std::move(written));
  }
  void finish(std::function<void(Result<Claim>)> done) override {
    upload_->finish([&meter = meter_, begin = Clock::now(), done = std::move(done)](Result<Claim> claim) {
      if (claim)
        meter.uploaded(claim.value().size_bytes, ms_since(begin));
      else
        meter.upload_failed(ms_since(begin));
      done(std::move(claim));
    });
  }

 private:
  const std::unique_ptr<Upload> upload_;
  StoreMeter& meter_;
};

}  // namespace

MeteredStore::MeteredStore(std::unique_ptr<ClaimStore> store, StoreMeter& meter)
    : ClaimStore(store->name(), store->key_rule()), store_(std::move(store)), meter_(meter) {}

std::unique_ptr<Upload> MeteredStore::begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) {
  return std::make_unique<MeteredUpload>(store_->begin(size_bytes, std::move(executor)), meter_);
}

void MeteredStore::fetch_redeemable(FetchRequest request) {
  store_->fetch(request.key, request.expected, request.wanted, std::move(request.executor),
                [&meter = meter_, begin = Clock::now(), wanted = request.wanted,
                 done = std::move(request.done)](FetchResult result) {
                  if (!wanted.expired()) meter.fetched(result_of(result), ms_since(begin));
                  done(std::move(result));
                });
}

}  // namespace bellhop
