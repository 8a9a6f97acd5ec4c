#include "daemon/cli/inspect/object_search.h"

#include <algorithm>

#include "daemon/cli/inspect/waiting_executor.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

using Kind = ObjectLook::Kind;

// One store's answers to several questions, as they come in.
std::vector<ObjectLook> look_for(StoreProbe& store, const std::vector<const std::string*>& keys) {
  const auto executor = std::make_shared<WaitingExecutor>();
  std::vector<ObjectLook> looks(keys.size());
  size_t left = keys.size();
  bool is_done = left == 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    store.look(*keys[i], [&, i, executor](ObjectLook look) {
      executor->post([&, i, look = std::move(look)]() mutable {
        looks[i] = std::move(look);
        is_done = --left == 0;
      });
    });
  }
  executor->run_until(is_done);
  return looks;
}

// More telling comes first.
int rank(const FoundObject& found) {
  switch (found.look.kind) {
    case Kind::present:
      return 0;
    case Kind::no_object:
      return 1;
    case Kind::unavailable:
      return 2;
    case Kind::missing:
      return 3;
  }
  return 4;
}

}  // namespace

Result<std::unique_ptr<ObjectSearch>> ObjectSearch::open(const config::Config& config) {
  std::unique_ptr<ObjectSearch> out(new ObjectSearch(config));
  for (const config::Store& each : config.stores) {
    auto opened = StoreProbe::open(each);
    if (!opened) return Error{opened.error()};
    out->stores_.push_back(std::move(opened.value()));
  }
  return out;
}

std::vector<StoreProbe*> ObjectSearch::order(const std::string& named) const {
  std::vector<StoreProbe*> out;
  const auto add = [&](const std::string& name) {
    const auto& listed = config_.consume_stores;
    if (!listed.empty() && std::find(listed.begin(), listed.end(), name) == listed.end()) return;
    for (const auto& store : stores_) {
      if (store->config().name == name && std::find(out.begin(), out.end(), store.get()) == out.end())
        out.push_back(store.get());
    }
  };
  add(named);
  add(config_.claim_check.store);
  for (const auto& store : stores_) add(store->config().name);
  return out;
}

std::vector<FoundObject> ObjectSearch::everywhere(const std::string& key) {
  std::vector<StoreProbe*> stores = order({});
  for (const auto& store : stores_) {
    if (std::find(stores.begin(), stores.end(), store.get()) == stores.end()) stores.push_back(store.get());
  }
  std::vector<FoundObject> out;
  for (StoreProbe* store : stores) {
    FoundObject found{store, {}, true};
    if (proto::is_redeemable_key(key, store->config().keys)) {
      found.look = look_for(*store, {&key}).front();
    } else {
      found.is_issued = false;
      found.look = {Kind::missing, proto::bad_key_reason(key), 0, {}, {}};
    }
    out.push_back(std::move(found));
  }
  return out;
}

std::vector<FoundObject> ObjectSearch::find(const std::vector<WantedObject>& wanted) {
  std::vector<FoundObject> best(wanted.size());
  std::vector<std::vector<StoreProbe*>> orders(wanted.size());
  size_t turns = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    best[i].look = {Kind::missing, "no store that it may be fetched from is configured", 0, {}, {}};
    orders[i] = order(wanted[i].headers.store);
    turns = std::max(turns, orders[i].size());
  }
  // In each turn every claim that is not found yet is looked for in the next store of its order.
  for (size_t turn = 0; turn < turns; ++turn) {
    for (const auto& store : stores_) {
      std::vector<const std::string*> keys;
      std::vector<size_t> asking;
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (best[i].is_there() || turn >= orders[i].size() || orders[i][turn] != store.get()) continue;
        if (!proto::is_redeemable_key(wanted[i].key, store->config().keys)) {
          if (best[i].store == nullptr)
            best[i] = {nullptr, {Kind::missing, proto::bad_key_reason(wanted[i].key), 0, {}, {}}, false};
          continue;
        }
        keys.push_back(&wanted[i].key);
        asking.push_back(i);
      }
      std::vector<ObjectLook> looks = look_for(*store, keys);
      for (size_t k = 0; k < asking.size(); ++k) {
        FoundObject found{store.get(), std::move(looks[k]), true};
        FoundObject& known = best[asking[k]];
        if (known.store == nullptr || rank(found) < rank(known)) known = std::move(found);
      }
    }
  }
  return best;
}

FetchResult ObjectSearch::fetch(const FoundObject& found, const WantedObject& wanted) {
  const auto executor = std::make_shared<WaitingExecutor>();
  const auto watch = std::make_shared<FetchWatch>();
  FetchResult out;
  bool is_done = false;
  found.store->fetch(wanted.key, wanted.headers.expected, watch, executor, [&](FetchResult result) {
    out = std::move(result);
    is_done = true;
  });
  executor->run_until(is_done);
  return out;
}

Result<Piece> ObjectSearch::read(const std::shared_ptr<LocalObject>& object, uint64_t offset, size_t count) {
  const auto executor = std::make_shared<WaitingExecutor>();
  Result<Piece> out = Error{"not read"};
  bool is_done = false;
  object->read(offset, count, executor, [&](Result<Piece> piece) {
    out = std::move(piece);
    is_done = true;
  });
  executor->run_until(is_done);
  return out;
}

}  // namespace bellhop
