#include "daemon/cli/open_stores.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/claims/filesystem/filesystem_store.h"
#include "daemon/claims/memory_store.h"
#include "daemon/claims/metered_store.h"
#include "daemon/claims/s3/s3_store.h"
#include "daemon/cli/slow_step.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

template <typename Store>
Result<std::unique_ptr<ClaimStore>> as_claim_store(Result<std::unique_ptr<Store>> opened) {
  if (!opened) return Error{opened.error()};
  return std::unique_ptr<ClaimStore>(std::move(opened.value()));
}

Result<std::unique_ptr<ClaimStore>> open_store(const config::Store& store) {
  if (const auto* filesystem = std::get_if<config::FilesystemStore>(&store.kind))
    return as_claim_store(FilesystemStore::make(store.name, *filesystem, store.keys));
  if (const auto* s3 = std::get_if<config::S3Store>(&store.kind))
    return as_claim_store(S3Store::open(store.name, *s3, store.keys));
  return std::unique_ptr<ClaimStore>(std::make_unique<MemoryStore>(store.name, store.keys));
}

std::string path_of(const config::Store& store) {
  const auto* filesystem = std::get_if<config::FilesystemStore>(&store.kind);
  return filesystem == nullptr ? "" : filesystem->path;
}

// Null: its settings are new, or there is none.
std::shared_ptr<ClaimStore> same_before(const config::Store& store, const StoresBefore* before) {
  if (before == nullptr) return nullptr;
  const auto& all = before->config.stores;
  return std::find(all.begin(), all.end(), store) == all.end() ? nullptr : before->stores.find(store.name);
}

}  // namespace

Result<std::unique_ptr<Stores>> open_stores(const config::Config& config, Meter* meter,
                                            const StoresBefore* before) {
  std::vector<std::shared_ptr<ClaimStore>> all;
  std::vector<std::unique_ptr<ClaimStore>> opened;  // each in its place, else null
  for (const config::Store& each : config.stores) {
    all.push_back(same_before(each, before));
    opened.emplace_back();
    if (all.back() != nullptr) continue;
    auto made = open_store(each);
    if (!made) return Error{made.error()};
    opened.back() = std::move(made.value());
  }
  if (meter != nullptr) meter->add_names(config);
  for (size_t i = 0; i < all.size(); ++i) {
    if (opened[i] == nullptr) continue;
    const std::string& name = config.stores[i].name;
    {
      const SlowStep step(
          {{"store", name}, {"key", "stores." + name}, if_known("path", path_of(config.stores[i]))});
      opened[i]->prepare(before == nullptr || before->stores.find(name) == nullptr);
    }
    if (meter == nullptr)
      all[i] = std::move(opened[i]);
    else
      all[i] = std::make_shared<MeteredStore>(std::move(opened[i]),
                                              meter->store(*meter->names()->stores.number(name)));
  }
  const std::string& fallback = config.claim_check.store;
  auto stores = std::make_unique<Stores>(std::move(all), fallback);
  if (!fallback.empty() && stores->fallback() == nullptr)
    return Error{fmt::format("claim_check.store: there is no store '{}'", fallback)};
  return stores;
}

}  // namespace bellhop
