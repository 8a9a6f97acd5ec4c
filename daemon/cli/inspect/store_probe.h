// One configured store, for commands that look into it and change nothing there: unlike the store that `run`
// opens (claims/claim_store.h), it writes no marker and no probe, and removes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/config.h"
#include "daemon/claims/claim_store.h"
#include "daemon/claims/object_look.h"

namespace bellhop {

class StoreProbe {
 public:
  // Errors name the store: an unknown group, no credentials, ... `config` must outlive it.
  static Result<std::unique_ptr<StoreProbe>> open(const config::Store& config);
  virtual ~StoreProbe() = default;

  const config::Store& config() const { return config_; }
  // Where an object is, for a person: a path, a URL.
  virtual std::string place_of(const std::string& key) const = 0;
  // The rest has this precondition: proto::is_redeemable_key(key, config().keys).
  // `done` is called once, here or on a thread of the store.
  virtual void look(const std::string& key, std::function<void(ObjectLook)> done) = 0;
  // XXH3-128 of the object as it is now, 32 hex digits. Waits.
  virtual Result<std::string> hash(const std::string& key) = 0;
  // As ClaimStore::fetch.
  virtual void fetch(const std::string& key, const Expected& expected, std::weak_ptr<FetchWatch> wanted,
                     std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done) = 0;

 protected:
  explicit StoreProbe(const config::Store& config) : config_(config) {}

 private:
  const config::Store& config_;
};

}  // namespace bellhop
