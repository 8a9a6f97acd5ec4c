#include "daemon/cli/open_stores.h"

#include <fmt/format.h>

#include "daemon/claims/filesystem/filesystem_store.h"
#include "daemon/claims/memory_store.h"
#include "daemon/claims/metered_store.h"
#include "daemon/claims/s3/s3_store.h"

namespace bellhop {

namespace {

template <typename Store>
Result<std::unique_ptr<ClaimStore>> as_claim_store(Result<std::unique_ptr<Store>> opened) {
  if (!opened) return Error{opened.error()};
  return std::unique_ptr<ClaimStore>(std::move(opened.value()));
}

Result<std::unique_ptr<ClaimStore>> open_store(const config::Store& store) {
  if (const auto* filesystem = std::get_if<config::FilesystemStore>(&store.kind))
    return as_claim_store(FilesystemStore::open(store.name, *filesystem, store.keys));
  if (const auto* s3 = std::get_if<config::S3Store>(&store.kind))
    return as_claim_store(S3Store::open(store.name, *s3, store.keys));
  return std::unique_ptr<ClaimStore>(std::make_unique<MemoryStore>(store.name, store.keys));
}

}  // namespace

Result<std::unique_ptr<Stores>> open_stores(const config::Config& config, Meter* meter) {
  std::vector<std::unique_ptr<ClaimStore>> all;
  for (const config::Store& each : config.stores) {
    auto opened = open_store(each);
    if (!opened) return Error{opened.error()};
    if (meter == nullptr)
      all.push_back(std::move(opened.value()));
    else
      all.push_back(std::make_unique<MeteredStore>(std::move(opened.value()), meter->store(all.size())));
  }
  const std::string& fallback = config.claim_check.store;
  auto stores = std::make_unique<Stores>(std::move(all), fallback);
  if (!fallback.empty() && stores->fallback() == nullptr)
    return Error{fmt::format("claim_check.store: there is no store '{}'", fallback)};
  return stores;
}

}  // namespace bellhop
