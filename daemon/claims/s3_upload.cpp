// How one upload goes. The parts of a multipart upload are in s3_upload_parts.cpp.
#include "daemon/claims/s3_upload.h"

#include <fmt/format.h>

#include <utility>

#include "daemon/claims/undo_unless_run.h"

namespace bellhop {

S3Upload::S3Upload(std::shared_ptr<S3Core> core, uint64_t size_bytes, std::shared_ptr<Executor> executor)
    : core_(std::move(core)),
      executor_(std::move(executor)),
      size_bytes_(size_bytes),
      plan_(plan_parts(size_bytes)),
      window_bytes_((parallel_parts_max + 1) * plan_.part_bytes),
      key_(core_->keys.next()) {
  if (core_->signs_payloads()) sha256_.emplace();
}

void S3Upload::write(Buffer piece, Written written) {
  core_->loop->post([self = shared_from_this(), piece = std::move(piece),
                     written = std::move(written)]() mutable { self->append(piece, std::move(written)); });
}

void S3Upload::finish(Done done) {
  core_->loop->post([self = shared_from_this(), done = std::move(done)]() mutable {
    self->done_ = std::move(done);
    self->finishing_ = true;
    if (self->received_bytes_ != self->size_bytes_)
      self->fail(fmt::format("a payload of {} bytes was announced and {} came", self->size_bytes_,
                             self->received_bytes_));
    if (self->failure_) return self->settle(Error{*self->failure_});
    if (self->stored_) return self->stored();  // a PUT that followed was quicker
    self->advance();
  });
}

void S3Upload::drop() {
  dropped_ = true;
  core_->loop->post([self = shared_from_this()] {
    self->done_ = nullptr;
    self->owed_.clear();
    self->give_up();
  });
}

void S3Upload::append(const Buffer& piece, Written written) {
  received_bytes_ += piece.size();
  if (!is_over()) {
    if (received_bytes_ > size_bytes_) {
      fail(fmt::format("a payload of {} bytes was announced and at least {} came", size_bytes_,
                       received_bytes_));
    } else if (!spool_) {
      auto made = Spool::create(*core_, size_bytes_, in_parts() ? window_bytes_ : size_bytes_);
      if (made)
        spool_ = std::move(made.value());
      else
        fail(made.error());
    }
  }
  if (!is_over()) {
    hash(piece);
    if (auto kept = spool_->append(piece); !kept) fail(kept.error());
  }
  owed_.push_back({received_bytes_, piece.size(), std::move(written)});
  release_written();
  if (!is_over()) advance();
}

void S3Upload::hash(Bytes piece) {
  hash_.update(piece);
  if (!sha256_) return;
  // Parts have a hash each.
  uint64_t offset = received_bytes_ - piece.size();
  while (in_parts() && !piece.empty()) {
    const uint64_t end = plan_.end_of(part_sha256s_.size());
    const size_t count = static_cast<size_t>(std::min<uint64_t>(piece.size(), end - offset));
    sha256_->update(piece.first(count));
    piece = piece.subspan(count);
    offset += count;
    if (offset == end) part_sha256s_.push_back(sha256_->finish());
  }
  if (!piece.empty()) sha256_->update(piece);
}

// Memory of what is spooled is free; of a large payload no more is taken than can be sent soon.
void S3Upload::release_written() {
  std::vector<Owed> free;
  while (!owed_.empty() &&
         (is_over() || !in_parts() || owed_.front().end <= acknowledged_bytes_ + window_bytes_)) {
    free.push_back(std::move(owed_.front()));
    owed_.pop_front();
  }
  if (free.empty()) return;
  executor_->post([self = shared_from_this(), free = std::move(free)] {
    for (const Owed& each : free) {
      if (!self->dropped_) each.written(each.bytes);
    }
  });
}

// Starts what can be started now.
void S3Upload::advance() {
  if (is_over() || !core_->client) return;
  if (in_parts()) {
    send_parts();
    return;
  }
  if (whole_) {
    whole_->resume();
    return;
  }
  if (finishing_) {
    send_whole(false);
  } else if (!sha256_ && !followed_ && size_bytes_ > small_payload_bytes_max && core_->client->has_room()) {
    send_whole(true);
  }
}

std::shared_ptr<S3Call> S3Upload::call(const char* method, const S3Address::Query& query,
                                       void (S3Upload::*done)(const S3Answer&)) {
  auto made = core_->call(method, core_->address.object_url(key_, query));
  made->done = [self = shared_from_this(), raw = made.get(), done](const S3Answer& answer) {
    std::erase_if(self->calls_, [raw](const auto& each) { return each.get() == raw; });
    ((*self).*done)(answer);
  };
  return made;
}

void S3Upload::start(const std::shared_ptr<S3Call>& call) {
  calls_.insert(call);
  core_->client->start(call);
}

void S3Upload::send_whole(bool follow) {
  if (!spool_) {  // the empty payload
    auto made = Spool::create(*core_, 0, 0);
    if (!made) return fail(made.error());
    spool_ = std::move(made.value());
  }
  followed_ = follow;
  whole_ = call("PUT", {}, &S3Upload::sent_whole);
  whole_->request.body = std::make_shared<SpoolBody>(spool_, 0, size_bytes_);
  if (sha256_) whole_->request.sha256 = sha256_->finish();
  core_->add_encryption(whole_->request);
  whole_->once = follow;
  start(whole_);
}

void S3Upload::sent_whole(const S3Answer& answer) {
  may_be_stored_ |= whole_->may_have_been_done;
  const bool followed = whole_->once;
  whole_.reset();
  if (answer.ok()) {
    stored();
  } else if (!dropped_ && followed && outcome_of(answer) == S3Outcome::transient) {
    advance();  // again when the payload is whole, if it is not yet
  } else {
    fail(core_->problem(answer, "PUT"));
  }
}

void S3Upload::stored() {
  upload_id_.clear();
  if (is_over()) return remove_object(core_, key_);
  stored_ = true;
  if (finishing_) settle(Claim{core_->name, key_, size_bytes_, hash_.hex()});
}

// The object is wanted no more: what runs is ended, what may have come to be is undone.
void S3Upload::give_up() {
  if (!core_->client) return;
  const std::shared_ptr<S3Call> whole = std::exchange(whole_, nullptr);
  const auto running = std::exchange(calls_, {});
  for (const auto& each : running) {
    // A request that is out whole is waited for, so that its undo comes after it; so is the answer with the
    // multipart upload's id.
    if ((each == whole && each->has_sent_all()) || each->is_undo) {
      each->is_undo = true;
      calls_.insert(each);
      if (each == whole) whole_ = whole;
      continue;
    }
    core_->client->cancel(each);
  }
  spool_.reset();
  if (whole_ || settled_) return;  // undone when its request has ended, or with the word of it
  if (whole && whole->may_have_been_done) may_be_stored_ = true;
  if (stored_ || may_be_stored_) remove_object(core_, key_);
  stored_ = false;
  abort_parts();
}

void S3Upload::fail(std::string reason) {
  if (failure_) return;
  failure_ = std::move(reason);
  give_up();
  release_written();
  if (done_) settle(Error{*failure_});
}

void S3Upload::settle(Result<Claim> result) {
  spool_.reset();
  if (!done_) return;
  settled_ = true;
  std::shared_ptr<UndoUnlessRun> undo;
  if (result)
    undo = std::make_shared<UndoUnlessRun>([core = core_, key = key_] { remove_object(core, key); });
  executor_->post([self = shared_from_this(), result = std::move(result), undo = std::move(undo),
                   done = std::exchange(done_, nullptr)] {
    if (self->dropped_) return;
    if (undo) undo->disarm();
    done(result);
  });
}

}  // namespace bellhop
