// ClaimStore: the seam between sessions and the places that keep payloads. Every call returns at once. The
// store works on threads of its own, and posts each callback to the Executor that came with the call. A
// callback is called exactly once, unless its Upload or LocalObject was destroyed first, its Executor was
// closed, or the store has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ops/executor.h"
#include "proto/bytes.h"
#include "proto/claim_frame.h"
#include "proto/result.h"

namespace bellhop {

// What stands for a payload in a message. Its form on the wire is in proto/README.md, "Claim frame" and
// "Claim headers".
struct Claim {
  std::string store;  // the store's configured name
  std::string key;
  uint64_t size_bytes = 0;
  std::string xxh128;  // 32 lower-case hex digits, XXH3-128 of the payload (canonical, as xxhsum -H2 prints)
};

// Why a fetch gave no object (daemon/claims/README.md, "Errors"). Only unavailable is worth a retry.
// not_issued and missing say nothing about other stores.
struct FetchFailure {
  enum class Kind { not_issued, missing, corrupt, unavailable };
  Kind kind = Kind::unavailable;
  std::string reason;  // has the key; for missing also the word "retention"; for corrupt both values
};

// One payload on its way in. Owned by one session, used on its thread.
class Upload {
 public:
  // Before finish(): aborts, and nothing stays in the store. After finish() but before its callback ran:
  // removes the object again if it comes to be, because its message was never sent.
  virtual ~Upload() = default;
  // Appends a piece. `written` gets its size in bytes when its memory is free again. After a failure pieces
  // are dropped, and still reported.
  virtual void write(Buffer piece, std::function<void(size_t bytes)> written) = 0;
  // No more pieces come. Makes the object durable, verifies that it has exactly the announced size, and gives
  // the claim. Errors: another size came, or the store could not keep it.
  virtual void finish(std::function<void(Result<Claim>)> done) = 0;
};

// A part of a payload, with the owner of its bytes. They may be a mapped file's
// (claims/filesystem/mapped_piece.h): hand them to the kernel and do not look at them.
struct Piece {
  Bytes bytes;
  std::shared_ptr<const void> owner;
};
inline Piece piece_of(Buffer buffer) {
  auto owner = std::make_shared<const Buffer>(std::move(buffer));
  const Bytes bytes(*owner);
  return {bytes, std::move(owner)};
}

// A payload that is local and verified. The session's thread and the store's share it; the last reference
// closes it.
class LocalObject {
 public:
  virtual ~LocalObject() = default;
  virtual uint64_t size_bytes() const = 0;
  // The whole payload when the store has it in memory already (a small one), else null.
  virtual const Buffer* in_memory() const { return nullptr; }
  // Reads exactly `count` bytes from `offset`; fewer is an error. Precondition: offset + count <=
  // size_bytes(). The piece that ends at the object's end comes only if nobody wrote to the object since it
  // was verified. So a caller that asks for it last never hands over a whole wrong payload.
  virtual void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
                    std::function<void(Result<Piece>)> done) = 0;
};

struct FetchResult {
  std::shared_ptr<LocalObject> object;  // null on failure
  FetchFailure failure;
};

// Who waits for a fetch. A store counts up with each piece that it has read, so that a slow store can be told
// from one that never answers. The session's thread and the store's share it.
struct FetchWatch {
  std::atomic<uint32_t> pieces{0};
};

struct Expected {
  std::optional<uint64_t> size_bytes;  // from the message's headers, when it has them
  std::optional<std::string> xxh128;
};

// A fetch as a store's parts hand it on. What its members are: ClaimStore::fetch().
struct FetchRequest {
  std::string key;
  Expected expected;
  std::weak_ptr<FetchWatch> wanted;
  std::shared_ptr<Executor> executor;
  std::function<void(FetchResult)> done;

  bool is_wanted() const { return !wanted.expired(); }
  // Any thread, once.
  void answer(FetchResult result) {
    executor->post(
        [result = std::move(result), done = std::move(done)]() mutable { done(std::move(result)); });
  }
};

class ClaimStore {
 public:
  ClaimStore(std::string name, proto::KeyRule keys) : name_(std::move(name)), keys_(keys) {}
  virtual ~ClaimStore() = default;
  ClaimStore(const ClaimStore&) = delete;
  ClaimStore& operator=(const ClaimStore&) = delete;

  const std::string& name() const { return name_; }
  proto::KeyRule key_rule() const { return keys_; }
  // Any thread. Begins an upload of a payload of `size_bytes`.
  virtual std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) = 0;
  // Any thread. Refuses a key that this store does not redeem before it builds any path or URL. When `wanted`
  // has expired nobody waits any more, and the work may end early with any failure. A store that stands still
  // may never answer at all.
  void fetch(const std::string& key, const Expected& expected, std::weak_ptr<FetchWatch> wanted,
             std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done) {
    FetchRequest request{key, expected, std::move(wanted), std::move(executor), std::move(done)};
    if (proto::is_redeemable_key(key, keys_))
      fetch_redeemable(std::move(request));
    else
      request.answer({nullptr, {FetchFailure::Kind::not_issued, proto::bad_key_reason(key)}});
  }
  // Any thread. Undoes a publish that no queue can hold. `key` came with the claim of one of begin()'s
  // uploads. A failure is logged, and retention takes the orphan.
  virtual void remove(const std::string& key) = 0;
  // Any thread, once, before the first transfer. What has to be done in the store's place, which may block.
  // `is_new`: no store that is open has this place.
  virtual void prepare(bool is_new) { static_cast<void>(is_new); }
  // The main thread, both; never waits. Upkeep is what a store does by itself for its configuration: from
  // when that is in use until it is not.
  virtual void begin_upkeep() {}
  virtual void end_upkeep() {}
  // Any thread, once, when nothing will be begun any more. Does what is queued, and ends the store's threads.
  // May take as long as the store stands still. By default there is nothing to wait for.
  virtual void close() {}
  // Any thread, also during close(). Keys under which an object may be, whole or in part, that nobody was
  // told of yet.
  virtual std::vector<std::string> uploads_under_way() const { return {}; }
  // Any thread. What it has in scratch files at the moment.
  virtual uint64_t scratch_bytes() const { return 0; }

 private:
  // fetch, with a key that may be part of a path or a URL.
  virtual void fetch_redeemable(FetchRequest request) = 0;

  const std::string name_;
  const proto::KeyRule keys_;
};

}  // namespace bellhop
