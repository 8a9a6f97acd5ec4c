// One payload on its way into an S3 store. What the session hands over is spooled (spool.h) and sent from
// there:
//
//   up to 64 MiB   one PUT. Over https it starts with the first byte and follows the payload as it comes
//                  (UNSIGNED-PAYLOAD; a payload that is in memory is sent once it is whole); if that attempt
//                  fails, the next starts when the payload is whole. Over http the signature has the
//                  payload's hash in it, so it starts when the payload is whole.
//   larger         a multipart upload: each part is sent once it is whole, with its own hash over http, up to
//                  four at a time. `written` is held back while five parts are not acknowledged.
//
//   session's thread: write, finish, drop ─► store's thread ─► executor: written, done
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/claims/s3_core.h"
#include "daemon/claims/s3_parts.h"
#include "daemon/claims/sha256.h"
#include "daemon/claims/spool.h"

namespace bellhop {

class S3Upload : public std::enable_shared_from_this<S3Upload> {
 public:
  S3Upload(std::shared_ptr<S3Core> core, uint64_t size_bytes, std::shared_ptr<Executor> executor);

  // The session's thread; Upload's contract. After drop() no callback is called.
  void write(Buffer piece, std::function<void(size_t bytes)> written);
  void finish(std::function<void(Result<Claim>)> done);
  void drop();

 private:
  using Written = std::function<void(size_t bytes)>;
  using Done = std::function<void(Result<Claim>)>;
  struct Owed {
    uint64_t end = 0;  // of the piece in the payload
    size_t bytes = 0;
    Written written;
  };

  // The store's thread, all of it.
  void append(const Buffer& piece, Written written);
  void hash(Bytes piece);
  void advance();
  void send_whole(bool follow);
  void sent_whole(const S3Answer& answer);
  void begin_parts();
  void begun(const S3Answer& answer);
  void send_parts();
  void send_part(size_t part);
  void sent_part(size_t part, const S3Answer& answer);
  void complete();
  void completed(const S3Answer& answer);
  void looked(const S3Answer& answer);
  void stored();
  void abort_parts();
  void give_up();
  void fail(std::string reason);
  void settle(Result<Claim> result);
  void release_written();
  bool is_over() const { return failure_.has_value() || dropped_; }
  bool in_parts() const { return size_bytes_ > single_put_bytes_max; }
  std::shared_ptr<S3Call> call(const char* method, const S3Address::Query& query,
                               void (S3Upload::*done)(const S3Answer&));
  void start(const std::shared_ptr<S3Call>& call);

  const std::shared_ptr<S3Core> core_;
  const std::shared_ptr<Executor> executor_;
  const uint64_t size_bytes_;
  const PartPlan plan_;
  const uint64_t window_bytes_;
  std::atomic<bool> dropped_ = false;  // set by the session's thread

  std::string key_;
  std::shared_ptr<Spool> spool_;
  std::optional<std::string> failure_;
  PayloadHash hash_;
  std::optional<Sha256> sha256_;           // of the whole, or of the part that is coming
  std::vector<std::string> part_sha256s_;  // of the parts that are whole (over http)
  uint64_t received_bytes_ = 0, acknowledged_bytes_ = 0;
  std::deque<Owed> owed_;
  Done done_;
  bool finishing_ = false, stored_ = false, settled_ = false;

  std::set<std::shared_ptr<S3Call>> calls_;
  std::shared_ptr<S3Call> whole_;  // the PUT, or the completion: what makes the object
  bool followed_ = false;          // a PUT that followed the payload was tried
  bool may_be_stored_ = false;     // an attempt was sent whole, whatever came of it
  std::string upload_id_;
  bool beginning_ = false;
  std::string lost_problem_;  // of a completion whose outcome is looked up
  size_t next_part_ = 0, parts_running_ = 0, parts_stored_ = 0;
  std::vector<std::string> etags_;
};

// What the session owns: its end drops the upload.
class S3UploadHandle : public Upload {
 public:
  explicit S3UploadHandle(std::shared_ptr<S3Upload> upload) : upload_(std::move(upload)) {}
  ~S3UploadHandle() override { upload_->drop(); }
  void write(Buffer piece, std::function<void(size_t bytes)> written) override {
    upload_->write(std::move(piece), std::move(written));
  }
  void finish(std::function<void(Result<Claim>)> done) override { upload_->finish(std::move(done)); }

 private:
  std::shared_ptr<S3Upload> upload_;
};

}  // namespace bellhop
