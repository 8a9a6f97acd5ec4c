// How one upload goes. The parts of a multipart upload are in s3_upload_parts.cpp.
#include "daemon/claims/s3/s3_upload.h"

#include <fmt/format.h>

#include <utility>

#include "daemon/claims/s3/s3_doubt.h"
#include "daemon/claims/undo_unless_run.h"

namespace bellhop {

S3Upload::S3Upload(std::shared_ptr<S3Core> core, uint64_t size_bytes, std::shared_ptr<Executor> executor)
    : core_(std::move(core)),
      executor_(std::move(executor)),
      size_bytes_(size_bytes),
      plan_(plan_parts(size_bytes)),
      window_bytes_((parallel_parts_max + 1) * plan_.part_bytes),
      key_(core_->keys.next()) {
  if (core_->signs_payloads()) sha256_ = Digest::sha256();
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
      if (made) {
        spool_ = std::move(made.value());
        under_way_ = key_under_way(core_, key_);
      } else {
        fail(made.error());
      }
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
  uint64_t offset = received_bytes_ - piece.size();
  while (!piece.empty()) {
    const uint64_t end = in_parts() ? plan_.end_of(checksums_.size()) : size_bytes_;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(piece.size(), end - offset));
    md5_.update(piece.first(count));
    if (sha256_) sha256_->update(piece.first(count));
    piece = piece.subspan(count);
    offset += count;
    if (offset == end) checksums_.push_back({md5_.finish(), sha256_ ? to_hex(sha256_->finish()) : ""});
  }
}

void S3Upload::add_checksum(S3Call& call, const Checksum& checksum) const {
  call.request.sha256 = checksum.sha256;
  core_->add_checksum(call.request, checksum.md5);
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
  if (finishing_ && !whole_) send_whole();
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
  call->owner = executor_.get();
  call->work = Work::write;
  calls_.insert(call);
  core_->client->start(call);
}

void S3Upload::send_whole() {
  if (!spool_) {  // the empty payload
    auto made = Spool::create(*core_, 0, 0);
    if (!made) return fail(made.error());
    spool_ = std::move(made.value());
    checksums_.push_back({md5_.finish(), sha256_ ? to_hex(sha256_->finish()) : ""});
  }
  whole_ = call("PUT", {}, &S3Upload::sent_whole);
  whole_->request.body = std::make_shared<SpoolBody>(spool_, 0, size_bytes_);
  add_checksum(*whole_, checksums_[0]);
  core_->add_encryption(whole_->request);
  whole_->asks_in_doubt = true;
  whole_->doubt = [md5 = to_hex(checksums_[0].md5)](const S3Answer& answer) -> std::string {
    std::string doubt = doubt_of_put(answer);
    // Where KMS keys encrypt, an ETag is no MD5 and says nothing.
    if (doubt.empty() && !answer.encryption.starts_with("aws:kms") && !etag_is(answer, md5))
      return "with the ETag " + answer.etag + ", which is not the MD5 of what was sent";
    return doubt;
  };
  start(whole_);
}

void S3Upload::sent_whole(const S3Answer& answer) {
  may_be_stored_ |= whole_->may_have_been_done || !answer.doubt.empty();
  whole_.reset();
  if (answer.ok()) return stored();
  if (dropped_) return give_up();
  if (!answer.doubt.empty()) return look(core_->problem(answer, "PUT"));
  fail(core_->problem(answer, "PUT"));
}

// Whether the object came to be is not known: is it there, with its size?
void S3Upload::look(std::string problem) {
  problem_ = std::move(problem);
  whole_ = call("HEAD", {}, &S3Upload::looked);
  whole_->once = may_go_again();
  whole_->doubt = doubt_of_head;
  start(whole_);
}

// A multipart upload that is no more cannot be completed again.
bool S3Upload::may_go_again() const {
  return doubts_ < core_->client->retries() && (!in_parts() || !upload_id_.empty());
}

void S3Upload::looked(const S3Answer& answer) {
  whole_.reset();
  if (answer.ok() && answer.content_bytes == size_bytes_) return stored();
  if (dropped_) return give_up();
  if (!may_go_again()) {
    if (!answer.ok() && answer.status != 404)
      problem_ += "; bellhop cannot find out whether it was stored: " + core_->problem(answer, "HEAD");
    return fail(problem_);
  }
  core_->client->after_failure(++doubts_, [self = shared_from_this()] {
    if (self->is_over() || !self->core_->client) return;
    if (self->in_parts())
      self->complete();
    else
      self->send_whole();
  });
}

void S3Upload::stored() {
  upload_id_.clear();
  if (is_over()) {
    remove_object(core_, key_);
    under_way_.reset();
    return;
  }
  settle(Claim{core_->name, key_, size_bytes_, hash_.hex()});
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
  if (may_be_stored_) remove_object(core_, key_);
  abort_parts();
  if (!beginning_) under_way_.reset();  // the undos name it now
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
  if (result) under_way_.reset();
  executor_->post([self = shared_from_this(), result = std::move(result), undo = std::move(undo),
                   done = std::exchange(done_, nullptr)] {
    if (self->dropped_) return;
    if (undo) undo->disarm();
    done(result);
  });
}

}  // namespace bellhop
