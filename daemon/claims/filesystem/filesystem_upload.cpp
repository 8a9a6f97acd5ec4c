#include "daemon/claims/filesystem/filesystem_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/claims/undo_unless_run.h"

namespace bellhop {

namespace {
constexpr size_t pieces_a_call_max = 64;
}

FilesystemUpload::FilesystemUpload(std::shared_ptr<FilesystemCore> core, uint64_t size_bytes,
                                   std::shared_ptr<Executor> executor)
    : core_(std::move(core)), executor_(std::move(executor)), size_bytes_(size_bytes) {}

void FilesystemUpload::write(Buffer piece, std::function<void(size_t bytes)> written) {
  const size_t size = piece.size();
  bool start = false;
  {
    std::lock_guard lock(mutex_);
    queued_.push_back({std::move(piece), size, std::move(written)});
    start = claim_strand();
  }
  if (start) start_strand();
}

void FilesystemUpload::finish(std::function<void(Result<Claim>)> done) {
  bool start = false;
  {
    std::lock_guard lock(mutex_);
    done_ = std::move(done);
    finishing_ = true;
    start = claim_strand();
  }
  if (start) start_strand();
}

void FilesystemUpload::drop() {
  // Callbacks that no pool thread has taken end here, on the thread that made them.
  std::deque<Piece> pieces;
  Done done;
  bool start = false;
  {
    std::lock_guard lock(mutex_);
    dropped_ = true;
    pieces.swap(queued_);
    done.swap(done_);
    finishing_ = false;
    if (may_have_file_) start = claim_strand();
  }
  if (start) start_strand();
}

bool FilesystemUpload::claim_strand() {
  may_have_file_ = true;
  return !std::exchange(scheduled_, true);
}

// Not with the mutex held: a pool that was stopped runs it here and now.
void FilesystemUpload::start_strand() {
  core_->pool.run(executor_.get(), Work::write, [self = shared_from_this()] { self->run(); });
}

void FilesystemUpload::run() {
  std::deque<Piece> batch;
  Done done;
  bool finishing = false;
  {
    std::lock_guard lock(mutex_);
    batch.swap(queued_);
    done.swap(done_);
    finishing = std::exchange(finishing_, false);
  }
  append(batch);
  if (finishing) {
    Result<Claim> result = publish();
    deliver(std::move(result), std::move(done));
  }
  bool again = false;
  {
    std::lock_guard lock(mutex_);
    scheduled_ = false;
    if (dropped_) {
      file_.reset();
      under_way_.reset();
    }
    if (finishing || dropped_) may_have_file_ = false;
    // Behind the jobs of other uploads, so that a long one does not keep a thread to itself.
    if (!queued_.empty() || finishing_) again = claim_strand();
  }
  if (again) start_strand();
}

void FilesystemUpload::append(std::deque<Piece>& batch) {
  while (!batch.empty()) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(batch.size(), pieces_a_call_max));
    const auto end = batch.begin() + count;
    append_some({std::make_move_iterator(batch.begin()), std::make_move_iterator(end)});
    batch.erase(batch.begin(), end);
  }
}

void FilesystemUpload::append_some(std::vector<Piece> pieces) {
  std::array<iovec, pieces_a_call_max> parts;
  size_t count = 0;
  for (Piece& piece : pieces) {
    parts[count++] = {piece.bytes.data(), piece.size_bytes};
    received_bytes_ += piece.size_bytes;
    if (!failure_ && !dropped_) hash_.update(piece.bytes);
  }
  if (received_bytes_ > size_bytes_ && !failure_) {
    fail(fmt::format("store '{}': a payload of {} bytes was announced and at least {} came",
                     core_->place.name, size_bytes_, received_bytes_));
  }
  if (!failure_ && !dropped_ && !file_) {
    key_ = core_->keys.next();
    under_way_.emplace(core_->keys_under_way, key_);
    auto created = UnfinishedObject::create(core_->place, core_->abilities, key_);
    if (created) {
      file_.emplace(std::move(created.value()));
      core_->is_there();
    } else {
      fail(created.error());
    }
  }
  if (!failure_ && !dropped_) {
    auto appended = file_->append({parts.data(), count});
    if (!appended) fail(appended.error());
  }
  for (Piece& piece : pieces) Buffer().swap(piece.bytes);
  executor_->post([self = shared_from_this(), pieces = std::move(pieces)] {
    for (const Piece& piece : pieces) {
      if (!self->dropped_) piece.written(piece.size_bytes);
    }
  });
}

// The disk space is given back at once, not when the session notices.
void FilesystemUpload::fail(std::string reason) {
  failure_ = std::move(reason);
  file_.reset();
  under_way_.reset();
}

Result<Claim> FilesystemUpload::publish() {
  if (dropped_) return Error{"the upload was dropped"};
  if (!failure_ && received_bytes_ != size_bytes_) {
    fail(fmt::format("store '{}': a payload of {} bytes was announced and {} came", core_->place.name,
                     size_bytes_, received_bytes_));
  }
  if (failure_) return Error{*failure_};
  if (!file_) {  // the empty payload
    key_ = core_->keys.next();
    under_way_.emplace(core_->keys_under_way, key_);
    auto created = UnfinishedObject::create(core_->place, core_->abilities, key_);
    if (!created) return Error{created.error()};
    file_.emplace(std::move(created.value()));
  }
  auto published = file_->publish(core_->directory_sync);
  file_.reset();
  under_way_.reset();
  if (!published) return Error{published.error()};
  return Claim{core_->place.name, key_, size_bytes_, hash_.hex()};
}

void FilesystemUpload::deliver(Result<Claim> result, Done done) {
  std::shared_ptr<UndoUnlessRun> undo;
  if (result) {
    undo = std::make_shared<UndoUnlessRun>([core = core_, key = key_] { remove_object(core, key); });
  }
  executor_->post([self = shared_from_this(), result = std::move(result), done = std::move(done),
                   undo = std::move(undo)] {
    if (self->dropped_) return;
    if (undo) undo->disarm();
    done(result);
  });
}

}  // namespace bellhop
