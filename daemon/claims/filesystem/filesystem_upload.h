// One payload on its way into a filesystem store. The session's pieces are queued here, and one pool thread
// at a time (a strand) takes them in order. Different uploads run in parallel. Only the strand touches the
// file.
//
//   session's thread: write, finish, drop ─► queue ─► pool: create, append, hash, publish
//                            ▲                                                     │
//                            └────────────── executor: written, done ◄─────────────┘
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_core.h"
#include "daemon/claims/filesystem/unfinished_object.h"
#include "daemon/claims/payload_hash.h"

namespace bellhop {

class FilesystemUpload : public std::enable_shared_from_this<FilesystemUpload> {
 public:
  FilesystemUpload(std::shared_ptr<FilesystemCore> core, uint64_t size_bytes,
                   std::shared_ptr<Executor> executor);

  // The session's thread. Upload's contract. After drop() no callback is called.
  void write(Buffer piece, std::function<void(size_t bytes)> written);
  void finish(std::function<void(Result<Claim>)> done);
  void drop();

 private:
  struct Piece {
    Buffer bytes;
    size_t size_bytes;
    std::function<void(size_t bytes)> written;
  };
  using Done = std::function<void(Result<Claim>)>;

  bool claim_strand();  // mutex_ held; true: start_strand() is to be called after it
  void start_strand();
  void run();  // a pool thread, one at a time
  void append(std::deque<Piece>& batch);
  void append_some(std::vector<Piece> pieces);
  void fail(std::string reason);
  Result<Claim> publish();
  void deliver(Result<Claim> result, Done done);

  const std::shared_ptr<FilesystemCore> core_;
  const std::shared_ptr<Executor> executor_;
  const uint64_t size_bytes_;

  std::mutex mutex_;  // the next five
  std::deque<Piece> queued_;
  Done done_;
  bool finishing_ = false;
  bool scheduled_ = false;      // a pool thread has the strand, or will have it
  bool may_have_file_ = false;  // the strand was started and has not finished
  std::atomic<bool> dropped_ = false;

  // The strand's own.
  std::string key_;
  std::optional<UnfinishedObject> file_;
  std::optional<KeyUnderWay> under_way_;  // from before the file until it is published or gone
  std::optional<std::string> failure_;
  PayloadHash hash_;
  uint64_t received_bytes_ = 0;
};

// What the session owns. Its destruction drops the upload.
class FilesystemUploadHandle : public Upload {
 public:
  explicit FilesystemUploadHandle(std::shared_ptr<FilesystemUpload> upload) : upload_(std::move(upload)) {}
  ~FilesystemUploadHandle() override { upload_->drop(); }
  void write(Buffer piece, std::function<void(size_t bytes)> written) override {
    upload_->write(std::move(piece), std::move(written));
  }
  void finish(std::function<void(Result<Claim>)> done) override { upload_->finish(std::move(done)); }

 private:
  std::shared_ptr<FilesystemUpload> upload_;
};

}  // namespace bellhop
