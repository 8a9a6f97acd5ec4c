// Transaction: what one publish or one hop makes true. The object in the store comes first, then the message
// at the broker; until the message was sent the object can and must be removed again, afterwards only when it
// is known that no queue can hold the message.
#pragma once

#include <optional>
#include <utility>

#include "daemon/claims/claim_store.h"

namespace bellhop {

// One owner, one thread. Dropping a transaction whose message was never sent removes its object.
class Transaction {
 public:
  Transaction() = default;
  ~Transaction() {
    if (!sent_) undo();
  }
  Transaction(Transaction&& other) noexcept { *this = std::move(other); }
  Transaction& operator=(Transaction&& other) noexcept {
    if (this == &other) return *this;
    if (!sent_) undo();
    store_ = std::exchange(other.store_, nullptr);
    claim_ = std::exchange(other.claim_, std::nullopt);
    sent_ = other.sent_;
    return *this;
  }

  void stored(ClaimStore& store, Claim claim) {
    store_ = &store;
    claim_ = std::move(claim);
  }
  const std::optional<Claim>& claim() const { return claim_; }

  // The message is on its way to the broker: from here on the outcome may be unknown, and an unknown outcome
  // keeps the object.
  void sent() { sent_ = true; }
  // The message was returned: no queue can hold it. Its object is still there to be handed back, and goes
  // with this transaction.
  void came_back() { sent_ = false; }
  // No queue can hold the message (returned, rolled back, never sent): removes the object.
  void undo() {
    if (store_ != nullptr && claim_) store_->remove(claim_->key);
    store_ = nullptr;
    claim_.reset();
  }

 private:
  ClaimStore* store_ = nullptr;
  std::optional<Claim> claim_;
  bool sent_ = false;
};

}  // namespace bellhop
