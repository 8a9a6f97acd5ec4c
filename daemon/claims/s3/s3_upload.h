// One payload on its way into an S3 store. The session's pieces are spooled (spool.h) and sent from there:
//
//   up to 64 MiB   one PUT, sent once the payload is whole: its checksum goes before it
//   larger         a multipart upload: each part is sent once it is whole, with its own checksum, up to
//                  four at a time. `written` is held back while five parts are not acknowledged.
//
// An answer that says 200 is believed if it has what it must have (s3_doubt.h). If not, bellhop looks for the
// object:
//
//   PUT, or completion ─┬─ believed ─────────────────────────────► stored
//          ▲            ├─ in doubt ─► HEAD ─┬─ the right size ──► stored
//          └── pause ◄──┼────────────────────┴─ none, or another
//                       └─ refused, or too often in doubt ───────► failed
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
#include "daemon/claims/s3/digest.h"
#include "daemon/claims/s3/s3_core.h"
#include "daemon/claims/s3/s3_parts.h"
#include "daemon/claims/s3/spool.h"

namespace bellhop {

class S3Upload : public std::enable_shared_from_this<S3Upload> {
 public:
  S3Upload(std::shared_ptr<S3Core> core, uint64_t size_bytes, std::shared_ptr<Executor> executor);

  // The session's thread. Upload's contract. After drop() no callback is called.
  void write(Buffer piece, std::function<void(size_t bytes)> written);
  void finish(std::function<void(Result<Claim>)> done);
  void drop();

 private:
  using Written = std::function<void(size_t bytes)>;
  using Done = std::function<void(Result<Claim>)>;
  // Of the whole, or of a part.
  struct Checksum {
    Buffer md5;
    std::string sha256;  // over http
  };
  struct Owed {
    uint64_t end = 0;  // of the piece in the payload
    size_t bytes = 0;
    Written written;
  };

  // The store's thread, all of it.
  void append(const Buffer& piece, Written written);
  void hash(Bytes piece);
  void advance();
  void send_whole();
  void sent_whole(const S3Answer& answer);
  void begin_parts();
  void begun(const S3Answer& answer);
  void send_parts();
  void send_part(size_t part);
  void sent_part(size_t part, const S3Answer& answer);
  void complete();
  void completed(const S3Answer& answer);
  void look(std::string problem);
  bool may_go_again() const;
  void looked(const S3Answer& answer);
  void stored();
  void abort_parts();
  void give_up();
  void fail(std::string reason);
  void settle(Result<Claim> result);
  void release_written();
  bool is_over() const { return failure_.has_value() || dropped_; }
  void add_checksum(S3Call& call, const Checksum& checksum) const;
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
  std::shared_ptr<KeyUnderWay> under_way_;  // from the first piece until it is stored or undone
  std::shared_ptr<Spool> spool_;
  std::optional<std::string> failure_;
  PayloadHash hash_;
  std::vector<Checksum> checksums_;  // of what is complete; of what is coming:
  Digest md5_ = Digest::md5();
  std::optional<Digest> sha256_;
  uint64_t received_bytes_ = 0, acknowledged_bytes_ = 0;
  std::deque<Owed> owed_;
  Done done_;
  bool finishing_ = false, settled_ = false;

  std::set<std::shared_ptr<S3Call>> calls_;
  std::shared_ptr<S3Call> whole_;  // the PUT, or the completion: what makes the object
  bool may_be_stored_ = false;     // an attempt was sent whole, whatever came of it
  std::string problem_;            // of an answer in doubt
  uint32_t doubts_ = 0;            // such answers so far
  std::string upload_id_;
  bool beginning_ = false;
  bool is_part_doubtful_ = false;  // an ETag is not the part's MD5: the object's size is looked at in the end
  size_t next_part_ = 0, parts_running_ = 0, parts_stored_ = 0;
  std::vector<std::string> etags_;
};

// What the session owns. Its destruction drops the upload.
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
