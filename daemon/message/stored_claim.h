// StoredClaim: what one publish or one hop makes true. First the object is in the store, then the message is
// at the broker. Until the message is sent the object can and must be removed again. Afterwards it is removed
// only when it is known that no queue can hold the message.
//
// A return proves that only if its exchange surely keeps nothing. Others may return a message and deliver it
// later: because of their type (x-delayed-message, x-recent-history), or through their alternate exchange. An
// object kept in vain is an orphan for retention; one removed too early is a lost message.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/claims/claim_store.h"

namespace bellhop {

// Whether an exchange keeps nothing, as far as its name alone tells: the default exchange, and those that
// every virtual host has and nobody can declare otherwise.
inline bool keeps_nothing(std::string_view exchange) {
  return exchange.empty() || exchange == "amq.direct" || exchange == "amq.topic" ||
         exchange == "amq.fanout" || exchange == "amq.headers" || exchange == "amq.match";
}

// One owner, one thread. Destroying one whose message was never sent removes its object.
class StoredClaim {
 public:
  StoredClaim() = default;
  ~StoredClaim() {
    if (!sent_) undo();
  }
  StoredClaim(StoredClaim&& other) noexcept { *this = std::move(other); }
  StoredClaim& operator=(StoredClaim&& other) noexcept {
    if (this == &other) return *this;
    if (!sent_) undo();
    store_ = std::exchange(other.store_, nullptr);
    claim_ = std::exchange(other.claim_, std::nullopt);
    sent_ = other.sent_;
    no_queue_has_it_ = other.no_queue_has_it_;
    return *this;
  }

  void stored(std::shared_ptr<ClaimStore> store, Claim claim) {
    store_ = std::move(store);
    claim_ = std::move(claim);
  }
  const std::optional<Claim>& claim() const { return claim_; }
  // Where it is; null when there is none. The configuration may have it no more.
  const std::shared_ptr<ClaimStore>& store() const { return store_; }

  // The message is on its way to the broker. From now on the outcome may be unknown, and an unknown outcome
  // keeps the object.
  void sent() { sent_ = true; }
  // The message came back. `no_queue_has_it`: its exchange surely keeps nothing. The object stays until
  // handed_back().
  void returned(bool no_queue_has_it) { no_queue_has_it_ = no_queue_has_it; }
  // The client has its payload again.
  void handed_back() {
    if (no_queue_has_it_) undo();
  }
  // No queue can hold the message: removes the object.
  void undo() {
    if (store_ != nullptr && claim_) store_->remove(claim_->key);
    store_ = nullptr;
    claim_.reset();
  }

 private:
  std::shared_ptr<ClaimStore> store_;
  std::optional<Claim> claim_;
  bool sent_ = false;
  bool no_queue_has_it_ = false;
};

}  // namespace bellhop
