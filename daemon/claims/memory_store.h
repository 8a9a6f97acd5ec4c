// Keeps payloads in this process's memory, for tests. They are gone when the process ends, and no other
// bellhop sees them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/key_source.h"

namespace bellhop {

class MemoryStore : public ClaimStore {
 public:
  // What uploads share with the store. They may outlive the store.
  struct Core {
    explicit Core(std::string store_name) : name(std::move(store_name)) {}
    const std::string name;
    KeySource keys;
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const Buffer>> objects;
  };

  // Warns in the log that it is in memory.
  explicit MemoryStore(const std::string& name, proto::KeyRule keys = proto::KeyRule::issued);

  std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) override;
  void remove(const std::string& key) override;
  size_t object_count() const;

 private:
  void fetch_redeemable(FetchRequest request) override;

  std::shared_ptr<Core> core_;
};

}  // namespace bellhop
