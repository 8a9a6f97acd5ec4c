// Looks for payloads in all of a configuration's stores, in the order in which a delivery's is asked for: the
// store that the message names, the default one, the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/cli/inspect/store_probe.h"
#include "daemon/pipeline/claim_headers.h"

namespace bellhop {

// Where a payload was looked for, and what is there.
struct FoundObject {
  StoreProbe* store = nullptr;  // null: no store was asked, see look.reason
  ObjectLook look;
  bool is_issued = true;  // false: the key is none that a store may be asked for

  bool is_there() const { return look.kind == ObjectLook::Kind::present; }
};

struct WantedObject {
  std::string key;
  ClaimHeaders headers;
};

class ObjectSearch {
 public:
  // `config` must outlive it.
  static Result<std::unique_ptr<ObjectSearch>> open(const config::Config& config);

  // What each store has under a key, those that a delivery may be fetched from first. Waits.
  std::vector<FoundObject> everywhere(const std::string& key);
  // For each claim the first store that has its object; if none has, what the most telling one said: one that
  // could not be asked before one without the object. The stores are asked for many at a time. Waits.
  std::vector<FoundObject> find(const std::vector<WantedObject>& wanted);
  // Fetches and verifies. Waits.
  FetchResult fetch(const FoundObject& found, const WantedObject& wanted);
  // The bytes of a fetched payload from `offset` on. Waits.
  Result<Piece> read(const std::shared_ptr<LocalObject>& object, uint64_t offset, size_t count);

 private:
  explicit ObjectSearch(const config::Config& config) : config_(config) {}
  std::vector<StoreProbe*> order(const std::string& named) const;

  const config::Config& config_;
  std::vector<std::unique_ptr<StoreProbe>> stores_;
};

}  // namespace bellhop
