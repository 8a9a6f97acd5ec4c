#include "daemon/claims/s3/s3_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "daemon/claims/memory_object.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/claims/s3/s3_object.h"
#include "daemon/ops/scratch_file.h"

namespace bellhop {

namespace {

using Kind = FetchFailure::Kind;

// An attempt that got so much farther than all before it starts the count of attempts anew: a long download
// over a bad line goes on.
constexpr uint64_t progress_bytes_min = uint64_t{1} << 20;
// More than any service takes (AWS: 50 TB).
constexpr uint64_t object_bytes_max = uint64_t{64} << 40;
constexpr long precondition_failed = 412, range_not_satisfiable = 416;

// One fetch, on the store's thread, kept by its call.
class S3Fetch : public std::enable_shared_from_this<S3Fetch> {
 public:
  S3Fetch(std::shared_ptr<S3Core> core, FetchRequest request)
      : core_(std::move(core)), request_(std::move(request)) {}

  bool is_wanted() const { return request_.is_wanted(); }

  void start() {
    call_ = core_->call("GET", core_->address.object_url(request_.key));
    call_->owner = request_.executor.get();
    call_->work = Work::fetch;
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
    call_->asks_in_doubt = true;
    call_->doubt = [self = shared_from_this()](const S3Answer& answer) { return self->doubt(answer); };
    call_->done = [self = shared_from_this()](const S3Answer& answer) { self->ended(answer); };
    core_->client->start(call_);
  }

 private:
  // A whole object that is not the one that the message is about.
  struct Wrong {
    std::string etag;
    uint64_t size_bytes = 0;
    std::string xxh128;  // empty: its size said enough
    bool operator==(const Wrong&) const = default;
  };

  // Before an attempt: it goes on behind what is here already.
  void prepare() {
    call_->request.headers.clear();
    if (received_bytes_ != 0 && !etag_.empty()) {
      call_->request.headers = {fmt::format("range: bytes={}-", received_bytes_), "if-match: " + etag_};
    } else if (wrong_) {
      call_->request.headers = {"cache-control: no-cache"};  // not out of the cache that spoilt it
    }
    is_first_piece_ = true;
    doubt_.clear();
  }

  bool take(const S3Answer& head, Bytes piece) {
    const auto waiter = request_.wanted.lock();
    if (waiter == nullptr) return failed(Kind::unavailable, "nobody waits for it any more");
    waiter->pieces++;
    if (is_first_piece_ && !begin_attempt(head)) return false;
    is_first_piece_ = false;
    hash_->update(piece);
    received_bytes_ += piece.size();
    if (total_bytes_ && received_bytes_ > *total_bytes_) {
      const std::string text =
          fmt::format("with more than the {} bytes that the message says", *total_bytes_);
      from_the_start();
      return odd(text);
    }
    if (received_bytes_ >= progress_bytes_ + progress_bytes_min) {
      progress_bytes_ = received_bytes_;
      call_->has_progressed = true;
      oddities_ = 0;
    }
    if (is_only_counted_) return true;
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
    if (head.status == 206 && received_bytes_ != 0 && goes_on(head.content_range)) return true;
    if (head.status == 206)
      return odd("with a range that was not asked for: " + head.content_range.substr(0, 100));
    if (head.status != 200) return odd("is no answer to this request");
    // The whole object, from its first byte.
    from_the_start();
    etag_ = head.etag;
    total_bytes_ = head.content_bytes ? head.content_bytes : request_.expected.size_bytes;
    // What an object is shows by its ETag, and a page by its type. What a proxy has encoded is not what is
    // stored.
    is_object_ = !head.etag.empty() && !head.content_type.starts_with("text/html") &&
                 (head.content_encoding.empty() || head.content_encoding == "identity");
    if (total_bytes_.value_or(0) > object_bytes_max) return odd("with a length that no object has");
    is_only_counted_ = request_.expected.size_bytes && *total_bytes_ != *request_.expected.size_bytes;
    // At first its length says enough. When it comes again it is seen whether all of it is there.
    if (is_only_counted_) {
      Wrong found{etag_, *total_bytes_, ""};
      return *total_bytes_ != 0 && wrong_ == found ? true : is_wrong(std::move(found));
    }
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

  // "bytes 5-9/10" for what is here and what the object has.
  bool goes_on(const std::string& content_range) const {
    return content_range.starts_with(fmt::format("bytes {}-", received_bytes_)) &&
           (!total_bytes_ || content_range.ends_with(fmt::format("/{}", *total_bytes_)) ||
            content_range.ends_with("/*"));
  }

  void from_the_start() {
    received_bytes_ = 0;
    hash_.emplace();
    bytes_.clear();
    file_.reset();
    etag_.clear();
    total_bytes_.reset();
    is_only_counted_ = false;
  }

  // Ends the attempt, for good.
  bool failed(Kind kind, const std::string& why) {
    failure_ = {kind, fmt::format("claim {}: store '{}': {}", request_.key, core_->name, why)};
    return false;
  }

  // Ends the attempt: what came is no answer.
  bool odd(std::string why) {
    doubt_ = std::move(why);
    return false;
  }

  // Ends the attempt: the object is not the message's. Twice in a row the same one: it is damaged, and no
  // answer.
  bool is_wrong(Wrong found) {
    const std::string text = found.xxh128.empty()
                                 ? fmt::format("the object has {} bytes, the message says {}",
                                               found.size_bytes, *request_.expected.size_bytes)
                                 : fmt::format("the object's XXH3-128 is {}, the message says {}",
                                               found.xxh128, *request_.expected.xxh128);
    from_the_start();
    const bool is_repeated = is_object_ && wrong_ == found;
    wrong_ = std::move(found);
    return is_repeated ? failed(Kind::corrupt, text) : odd("but " + text);
  }

  // What an answer lacks whose status is a success: said by take() already, or it had no body to take.
  std::string doubt(const S3Answer& answer) {
    if (failure_ || !doubt_.empty()) return doubt_;
    if (is_first_piece_ && !begin_attempt(answer)) return doubt_;
    is_first_piece_ = false;
    if (answer.code != CURLE_OK) return {};
    if (received_bytes_ < total_bytes_.value_or(0)) {
      odd(fmt::format("that ends at {} bytes of {}", received_bytes_, *total_bytes_));
    } else if (is_only_counted_) {
      is_wrong({etag_, received_bytes_, ""});
    } else if (const std::string found = hash_->hex();
               request_.expected.xxh128 && found != *request_.expected.xxh128) {
      is_wrong({etag_, received_bytes_, found});
    }
    return doubt_;
  }

  void ended(const S3Answer& answer) {
    call_.reset();
    if (!failure_ && !answer.doubt.empty() && go_again()) return;
    if (!failure_ && !answer.ok()) {
      const bool missing = outcome_of(answer) == S3Outcome::missing;
      const std::string why = core_->problem(answer, "GET");
      failed(missing ? Kind::missing : Kind::unavailable,
             missing ? "no such object: removed by retention, or stored elsewhere (" + why + ")"
                     : "unavailable: " + why);
    }
    FetchResult result;
    if (failure_) {
      result.failure = std::move(*failure_);
    } else if (file_) {
      result.object = std::make_shared<ScratchObject>(core_, std::move(file_), request_.key, received_bytes_,
                                                      hash_->hex());
    } else if (is_small_) {
      result.object = std::make_shared<MemoryObject>(std::make_shared<const Buffer>(std::move(bytes_)));
    } else {
      result.object =
          std::make_shared<RemoteObject>(core_, etag_, request_.key, received_bytes_, hash_->hex());
    }
    request_.answer(std::move(result));
  }

  // After an odd answer: at least once, or nothing could ever be known to be damaged.
  bool go_again() {
    if (oddities_ >= std::max<uint32_t>(core_->client->retries(), 1)) return false;
    core_->client->after_failure(++oddities_, [self = shared_from_this()] {
      if (self->core_->client && self->is_wanted()) self->start();
    });
    return true;
  }

  const std::shared_ptr<S3Core> core_;
  FetchRequest request_;
  std::shared_ptr<S3Call> call_;

  std::string etag_;
  std::optional<uint64_t> total_bytes_;
  uint64_t received_bytes_ = 0;
  uint64_t progress_bytes_ = 0;  // the farthest that an attempt came, roughly
  bool is_first_piece_ = true, is_small_ = true, is_object_ = false;
  bool is_only_counted_ = false;  // of another size than the message says
  Buffer bytes_;
  std::shared_ptr<ScratchFile> file_;
  std::optional<PayloadHash> hash_;
  std::string doubt_;           // of this attempt
  std::optional<Wrong> wrong_;  // the last one that came
  uint32_t oddities_ = 0;       // odd answers without progress so far
  std::optional<FetchFailure> failure_;
};

}  // namespace

void fetch_object(const std::shared_ptr<S3Core>& core, FetchRequest request) {
  core->loop->post([fetch = std::make_shared<S3Fetch>(core, std::move(request)), core] {
    if (core->client && fetch->is_wanted()) fetch->start();
  });
}

}  // namespace bellhop
