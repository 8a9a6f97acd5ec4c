#include "daemon/claims/s3_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "daemon/claims/memory_object.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/claims/s3_object.h"
#include "daemon/claims/scratch_file.h"

namespace bellhop {

namespace {

using Kind = FetchFailure::Kind;

// An attempt that got so much farther than all before it starts the count of attempts anew: a long download
// over a bad line goes on.
constexpr uint64_t progress_bytes_min = uint64_t{1} << 20;
constexpr long precondition_failed = 412, range_not_satisfiable = 416;

// One fetch, on the store's thread, kept by its call.
class S3Fetch : public std::enable_shared_from_this<S3Fetch> {
 public:
  S3Fetch(std::shared_ptr<S3Core> core, std::string key, Expected expected, std::weak_ptr<const void> wanted,
          std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done)
      : core_(std::move(core)),
        key_(std::move(key)),
        expected_(std::move(expected)),
        wanted_(std::move(wanted)),
        executor_(std::move(executor)),
        done_(std::move(done)) {}

  bool is_wanted() const { return !wanted_.expired(); }

  void start() {
    call_ = core_->call("GET", core_->address.object_url(key_));
    call_->before_attempt = [self = shared_from_this()](uint32_t) { self->prepare(); };
    call_->request.sink = [self = shared_from_this()](const S3Answer& head, Bytes piece) {
      return self->take(head, piece);
    };
    // The object is another one than the half that is here: from the start then.
    call_->is_transient_too = [self = shared_from_this()](const S3Answer& answer) {
      const bool changed = self->received_bytes_ != 0 &&
                           (answer.status == precondition_failed || answer.status == range_not_satisfiable);
      if (changed) self->etag_.clear();
      return changed;
    };
    call_->done = [self = shared_from_this()](const S3Answer& answer) { self->ended(answer); };
    core_->client->start(call_);
  }

 private:
  // Before an attempt: it goes on behind what is here already.
  void prepare() {
    call_->request.headers.clear();
    if (received_bytes_ != 0 && !etag_.empty())
      call_->request.headers = {fmt::format("range: bytes={}-", received_bytes_), "if-match: " + etag_};
    is_first_piece_ = true;
  }

  bool take(const S3Answer& head, Bytes piece) {
    if (wanted_.expired()) return failed(Kind::unavailable, "nobody waits for it any more");
    if (is_first_piece_ && !begin_attempt(head)) return false;
    is_first_piece_ = false;
    hash_->update(piece);
    received_bytes_ += piece.size();
    if (received_bytes_ >= progress_bytes_ + progress_bytes_min) {
      progress_bytes_ = received_bytes_;
      call_->has_progressed = true;
    }
    if (file_) {
      if (auto written = file_->write(received_bytes_ - piece.size(), piece); !written) {
        if (etag_.empty()) return failed(Kind::unavailable, written.error());
        file_.reset();  // a full disk: as with no room at all
      }
    } else if (is_small_) {
      if (received_bytes_ > small_payload_bytes_max && !total_bytes_)
        return failed(Kind::unavailable, "the service did not say how large the object is");
      put(bytes_, piece);
    }
    return true;
  }

  bool begin_attempt(const S3Answer& head) {
    const std::string asked = fmt::format("bytes {}-", received_bytes_);
    if (head.status == 206 && received_bytes_ != 0 && head.content_range.starts_with(asked)) return true;
    if (head.status == 206)
      return failed(Kind::unavailable, "the service answered with a range that was not asked for: " +
                                           head.content_range.substr(0, 100));
    // The whole object, from its first byte.
    received_bytes_ = 0;
    hash_.emplace();
    bytes_.clear();
    file_.reset();
    etag_ = head.etag;
    total_bytes_ = head.content_bytes;
    if (!fits_expectation(total_bytes_)) return false;
    is_small_ = total_bytes_.value_or(0) <= small_payload_bytes_max;
    if (is_small_) return true;
    auto made = ScratchFile::create(core_->fetch_scratch, *total_bytes_);
    if (made) {
      file_ = std::move(made.value());
    } else if (etag_.empty()) {
      return failed(Kind::unavailable, made.error());
    }  // else: verified as it goes by, and read again when it is handed over
    return true;
  }

  bool fits_expectation(std::optional<uint64_t> found) {
    if (!found || !expected_.size_bytes || *found == *expected_.size_bytes) return true;
    return failed(Kind::corrupt,
                  fmt::format("the object has {} bytes, the message says {}", *found, *expected_.size_bytes));
  }

  // Ends the attempt, for good.
  bool failed(Kind kind, const std::string& why) {
    failure_ = {kind, fmt::format("claim {}: store '{}': {}", key_, core_->name, why)};
    return false;
  }

  void ended(const S3Answer& answer) {
    call_.reset();
    if (!failure_ && !answer.ok()) {
      const bool missing = outcome_of(answer) == S3Outcome::missing;
      const std::string why = core_->problem(answer, "GET");
      failed(missing ? Kind::missing : Kind::unavailable,
             missing ? "no such object: removed by retention, or stored elsewhere (" + why + ")"
                     : "unavailable: " + why);
    }
    if (!failure_ && is_first_piece_ && received_bytes_ == 0) {  // the empty object
      if (begin_attempt(answer)) is_first_piece_ = false;
    }
    if (!failure_) verify();
    FetchResult result;
    if (failure_) {
      result.failure = std::move(*failure_);
    } else if (file_) {
      result.object = std::make_shared<ScratchObject>(core_, std::move(file_), key_, received_bytes_);
    } else if (is_small_) {
      result.object = std::make_shared<MemoryObject>(std::make_shared<const Buffer>(std::move(bytes_)));
    } else {
      result.object = std::make_shared<RemoteObject>(core_, etag_, key_, received_bytes_);
    }
    executor_->post(
        [result = std::move(result), done = std::move(done_)]() mutable { done(std::move(result)); });
  }

  void verify() {
    if (total_bytes_ && received_bytes_ != *total_bytes_) {
      failed(Kind::unavailable, fmt::format("{} bytes of {} came", received_bytes_, *total_bytes_));
    } else if (!fits_expectation(received_bytes_)) {
      return;
    } else if (const std::string found = hash_->hex(); expected_.xxh128 && found != *expected_.xxh128) {
      failed(Kind::corrupt,
             fmt::format("the object's XXH3-128 is {}, the message says {}", found, *expected_.xxh128));
    }
  }

  const std::shared_ptr<S3Core> core_;
  const std::string key_;
  const Expected expected_;
  const std::weak_ptr<const void> wanted_;
  const std::shared_ptr<Executor> executor_;
  std::function<void(FetchResult)> done_;
  std::shared_ptr<S3Call> call_;

  std::string etag_;
  std::optional<uint64_t> total_bytes_;
  uint64_t received_bytes_ = 0;
  uint64_t progress_bytes_ = 0;  // the farthest that an attempt came, roughly
  bool is_first_piece_ = true, is_small_ = true;
  Buffer bytes_;
  std::shared_ptr<ScratchFile> file_;
  std::optional<PayloadHash> hash_;
  std::optional<FetchFailure> failure_;
};

}  // namespace

void fetch_object(const std::shared_ptr<S3Core>& core, const std::string& key, const Expected& expected,
                  std::weak_ptr<const void> wanted, std::shared_ptr<Executor> executor,
                  std::function<void(FetchResult)> done) {
  core->loop->post([fetch = std::make_shared<S3Fetch>(core, key, expected, std::move(wanted),
                                                      std::move(executor), std::move(done)),
                    core] {
    if (core->client && fetch->is_wanted()) fetch->start();
  });
}

}  // namespace bellhop
