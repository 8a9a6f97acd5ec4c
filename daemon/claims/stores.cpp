#include "daemon/claims/stores.h"

#include <fmt/format.h>

#include "daemon/claims/filesystem_store.h"
#include "daemon/claims/memory_store.h"
#include "daemon/claims/s3_store.h"

namespace bellhop {

Result<std::unique_ptr<Stores>> Stores::open(const config::Config& config) {
  auto stores = std::make_unique<Stores>();
  for (const config::Store& each : config.stores) {
    if (const auto* filesystem = std::get_if<config::FilesystemStore>(&each.kind)) {
      auto opened = FilesystemStore::open(each.name, *filesystem, each.keys);
      if (!opened) return Error{opened.error()};
      stores->stores_.push_back(std::move(opened.value()));
    } else if (const auto* s3 = std::get_if<config::S3Store>(&each.kind)) {
      auto opened = S3Store::open(each.name, *s3, each.keys);
      if (!opened) return Error{opened.error()};
      stores->stores_.push_back(std::move(opened.value()));
    } else {
      stores->stores_.push_back(std::make_unique<MemoryStore>(each.name, each.keys));
    }
  }
  const std::string& fallback = config.claim_check.store;
  stores->fallback_ = stores->find(fallback);
  if (!fallback.empty() && stores->fallback_ == nullptr) {
    return Error{fmt::format("claim_check.store: there is no store '{}'", fallback)};
  }
  return stores;
}

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
