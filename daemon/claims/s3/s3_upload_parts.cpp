// A large payload as a multipart upload: begun with its first bytes, parts sent as they become whole, and
// completed, or aborted so that nothing of it stays.
#include <fmt/format.h>

#include <utility>

#include "daemon/claims/s3/s3_doubt.h"
#include "daemon/claims/s3/s3_upload.h"
#include "daemon/ops/trouble.h"
#include "proto/xml_scan.h"

namespace bellhop {

namespace {
std::string with_upload(const std::string& key, const std::string& id) {
  return fmt::format("{} (multipart upload {})", key, id);
}
}  // namespace

void S3Upload::begin_parts() {
  beginning_ = true;
  const auto made = call("POST", {{"uploads", ""}}, &S3Upload::begun);
  core_->add_encryption(made->request);
  made->is_undo = true;  // its answer is waited for: it has the id that an abort needs
  made->doubt = doubt_of_begin;
  start(made);
}

void S3Upload::begun(const S3Answer& answer) {
  beginning_ = false;
  upload_id_ = answer.ok() ? proto::xml_text(answer.body, "UploadId").value_or("") : "";
  if (is_over()) {
    abort_parts();
    under_way_.reset();
    return;
  }
  if (!upload_id_.empty()) {
    under_way_ = key_under_way(core_, with_upload(key_, upload_id_));
    return advance();
  }
  fail(core_->problem(answer, "POST (begin a multipart upload)"));
}

void S3Upload::send_parts() {
  if (upload_id_.empty()) {
    if (!beginning_) begin_parts();
    return;
  }
  while (parts_running_ < parallel_parts_max && next_part_ < plan_.count &&
         received_bytes_ >= plan_.end_of(next_part_)) {
    send_part(next_part_++);
  }
  if (finishing_ && parts_stored_ == plan_.count && !whole_) complete();
}

void S3Upload::send_part(size_t part) {
  etags_.resize(plan_.count);
  parts_running_++;
  const auto made = core_->call(
      "PUT",
      core_->address.object_url(key_, {{"partNumber", std::to_string(part + 1)}, {"uploadId", upload_id_}}));
  const uint64_t offset = plan_.offset_of(part);
  made->request.body = std::make_shared<SpoolBody>(spool_, offset, plan_.end_of(part) - offset);
  add_checksum(*made, checksums_[part]);
  // A part whose ETag is not its MD5 is sent once more. It may be right all the same (services that encrypt
  // with KMS keys, or count in their own way): the size of the whole is looked at in the end.
  made->doubt = [self = shared_from_this(), part,
                 is_again = core_->client->retries() == 0](const S3Answer& answer) mutable {
    std::string doubt = doubt_of_put(answer);
    if (!doubt.empty() || answer.encryption.starts_with("aws:kms") ||
        etag_is(answer, to_hex(self->checksums_[part].md5)))
      return doubt;
    if (self->is_part_doubtful_ || std::exchange(is_again, true)) {
      self->is_part_doubtful_ = true;
      return doubt;
    }
    return "with the ETag " + answer.etag + ", which is not the MD5 of what was sent";
  };
  made->done = [self = shared_from_this(), raw = made.get(), part](const S3Answer& answer) {
    std::erase_if(self->calls_, [raw](const auto& each) { return each.get() == raw; });
    self->sent_part(part, answer);
  };
  start(made);
}

void S3Upload::sent_part(size_t part, const S3Answer& answer) {
  parts_running_--;
  if (!answer.ok())
    return fail(core_->problem(answer, fmt::format("PUT (part {} of {})", part + 1, plan_.count)));
  etags_[part] = answer.etag;
  parts_stored_++;
  const uint64_t bytes = plan_.end_of(part) - plan_.offset_of(part);
  acknowledged_bytes_ += bytes;
  if (spool_) spool_->drop(plan_.offset_of(part), bytes);
  release_written();
  advance();
}

void S3Upload::complete() {
  whole_ = call("POST", {{"uploadId", upload_id_}}, &S3Upload::completed);
  core_->set_body(*whole_, complete_multipart_body(etags_));
  whole_->asks_in_doubt = true;
  whole_->doubt = [is_part_doubtful = is_part_doubtful_](const S3Answer& answer) {
    std::string doubt = doubt_of_completion(answer);
    return doubt.empty() && is_part_doubtful ? "behind a part whose ETag is not its MD5" : doubt;
  };
  start(whole_);
}

void S3Upload::completed(const S3Answer& answer) {
  may_be_stored_ |= whole_->may_have_been_done || !answer.doubt.empty();
  whole_.reset();
  if (answer.ok()) return stored();
  if (dropped_) return give_up();
  const std::string problem = core_->problem(answer, "POST (complete a multipart upload)");
  // The answer to an attempt may be lost: then the upload is no more, and the object is there.
  const bool is_no_more = may_be_stored_ && s3_code(answer) == "NoSuchUpload";
  if (is_no_more) upload_id_.clear();
  if (is_no_more || !answer.doubt.empty()) return look(problem);
  fail(problem);
}

void S3Upload::abort_parts() {
  const std::string id = std::exchange(upload_id_, {});
  if (id.empty() || !core_->client) return;
  const auto made = core_->call("DELETE", core_->address.object_url(key_, {{"uploadId", id}}));
  made->is_undo = true;
  made->doubt = doubt_of_delete;
  made->done = [core = core_, key = key_,
                under_way = key_under_way(core_, with_upload(key_, id))](const S3Answer& answer) {
    if (!answer.ok() && s3_code(answer) != "NoSuchUpload")
      tell_trouble("unfinished upload stays", core->name, "an unfinished upload stays until it is swept",
                   {{"store", core->name}, {"key", key}, {"reason", core->problem(answer, "DELETE")}});
  };
  core_->client->start(made);
}

}  // namespace bellhop
