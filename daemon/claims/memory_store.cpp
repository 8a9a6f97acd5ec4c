#include "daemon/claims/memory_store.h"

#include <fmt/format.h>

#include "daemon/claims/memory_object.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/claims/undo_unless_run.h"
#include "daemon/ops/log_line.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

class MemoryUpload : public Upload {
 public:
  MemoryUpload(std::shared_ptr<MemoryStore::Core> core, uint64_t size_bytes,
               std::shared_ptr<Executor> executor)
      : core_(std::move(core)), size_bytes_(size_bytes), executor_(std::move(executor)) {}

  void write(Buffer piece, std::function<void(size_t bytes)> written) override {
    received_bytes_ += piece.size();
    if (received_bytes_ <= size_bytes_) put(bytes_, piece);
    executor_->post([alive = std::weak_ptr<int>(alive_), size = piece.size(), written = std::move(written)] {
      if (!alive.expired()) written(size);
    });
  }

  void finish(std::function<void(Result<Claim>)> done) override {
    Result<Claim> result = Error{fmt::format("store '{}': a payload of {} bytes was announced and {} came",
                                             core_->name, size_bytes_, received_bytes_)};
    std::shared_ptr<UndoUnlessRun> undo;
    if (received_bytes_ == size_bytes_) {
      PayloadHash hash;
      hash.update(bytes_);
      const std::string key = core_->keys.next();
      result = Claim{core_->name, key, size_bytes_, hash.hex()};
      undo = std::make_shared<UndoUnlessRun>([core = core_, key] {
        std::lock_guard lock(core->mutex);
        core->objects.erase(key);
      });
      std::lock_guard lock(core_->mutex);
      core_->objects[key] = std::make_shared<const Buffer>(std::move(bytes_));
    }
    executor_->post([alive = std::weak_ptr<int>(alive_), result = std::move(result), undo = std::move(undo),
                     done = std::move(done)] {
      if (alive.expired()) return;
      if (undo) undo->disarm();
      done(result);
    });
  }

 private:
  const std::shared_ptr<MemoryStore::Core> core_;
  const uint64_t size_bytes_;
  const std::shared_ptr<Executor> executor_;
  Buffer bytes_;
  uint64_t received_bytes_ = 0;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // who dropped the upload wants no answer
};

FetchResult find_object(MemoryStore::Core& core, const std::string& key, const Expected& expected) {
  using Kind = FetchFailure::Kind;
  std::shared_ptr<const Buffer> bytes;
  {
    std::lock_guard lock(core.mutex);
    const auto found = core.objects.find(key);
    if (found != core.objects.end()) bytes = found->second;
  }
  if (!bytes) {
    return {nullptr,
            {Kind::missing,
             fmt::format("claim {}: store '{}' has no such object: removed by retention, or stored "
                         "elsewhere",
                         key, core.name)}};
  }
  if (expected.size_bytes && *expected.size_bytes != bytes->size()) {
    return {nullptr,
            {Kind::corrupt, fmt::format("claim {}: store '{}': the object has {} bytes, the message says {}",
                                        key, core.name, bytes->size(), *expected.size_bytes)}};
  }
  PayloadHash hash;
  hash.update(*bytes);
  if (expected.xxh128 && *expected.xxh128 != hash.hex()) {
    return {
        nullptr,
        {Kind::corrupt, fmt::format("claim {}: store '{}': the object's XXH3-128 is {}, the message says {}",
                                    key, core.name, hash.hex(), *expected.xxh128)}};
  }
  return {std::make_shared<MemoryObject>(std::move(bytes)), {}};
}

}  // namespace

MemoryStore::MemoryStore(const std::string& name, proto::KeyRule keys)
    : ClaimStore(name, keys), core_(std::make_shared<Core>(name)) {
  log_warn(
      "store is in memory, for trials: its payloads are lost when bellhop ends, and no other bellhop can "
      "read "
      "them",
      {{"store", name}});
}

std::unique_ptr<Upload> MemoryStore::begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) {
  return std::make_unique<MemoryUpload>(core_, size_bytes, std::move(executor));
}

void MemoryStore::fetch_redeemable(FetchRequest request) {
  request.answer(find_object(*core_, request.key, request.expected));
}

size_t MemoryStore::object_count() const {
  std::lock_guard lock(core_->mutex);
  return core_->objects.size();
}

void MemoryStore::remove(const std::string& key) {
  std::lock_guard lock(core_->mutex);
  core_->objects.erase(key);
}

}  // namespace bellhop
