// A LocalObject whose bytes are in memory.
#pragma once

#include <memory>
#include <utility>

#include "daemon/claims/claim_store.h"

namespace bellhop {

class MemoryObject : public LocalObject {
 public:
  explicit MemoryObject(std::shared_ptr<const Buffer> bytes) : bytes_(std::move(bytes)) {}

  uint64_t size_bytes() const override { return bytes_->size(); }
  const Buffer* in_memory() const override { return bytes_.get(); }
  void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
            std::function<void(Result<Piece>)> done) override {
    // The task does not keep the object alive: who dropped it wants no answer.
    executor->post(
        [alive = std::weak_ptr<int>(alive_), bytes = bytes_, offset, count, done = std::move(done)] {
          if (alive.expired()) return;
          if (offset > bytes->size() || count > bytes->size() - offset) {
            done(Error{"a read past the object's end"});
            return;
          }
          done(Piece{Bytes(*bytes).subspan(offset, count), bytes});
        });
  }

 private:
  const std::shared_ptr<const Buffer> bytes_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace bellhop
