// A large payload as a multipart upload: begun with its first bytes, parts sent as they become whole, and
// completed, or aborted so that nothing of it stays.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/claims/s3_upload.h"
#include "proto/xml_scan.h"

namespace bellhop {

void S3Upload::begin_parts() {
  beginning_ = true;
  const auto made = call("POST", {{"uploads", ""}}, &S3Upload::begun);
  core_->add_encryption(made->request);
  made->is_undo = true;  // its answer is waited for: it has the id that an abort needs
  start(made);
}

void S3Upload::begun(const S3Answer& answer) {
  beginning_ = false;
  upload_id_ = answer.ok() ? proto::xml_text(answer.body, "UploadId").value_or("") : "";
  if (is_over()) return abort_parts();
  if (!upload_id_.empty()) return advance();
  fail(answer.ok() ? "a multipart upload was begun and the answer has no UploadId"
                   : core_->problem(answer, "POST (begin a multipart upload)"));
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
  if (sha256_) made->request.sha256 = part_sha256s_[part];
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
  // A completion may be answered with 200 and then fail: the error stands in the body.
  whole_->amend = [](S3Answer& answer) {
    if (answer.ok() && !proto::xml_elements(answer.body, "Error").empty()) answer.status = 500;
  };
  start(whole_);
}

void S3Upload::completed(const S3Answer& answer) {
  may_be_stored_ |= whole_->may_have_been_done;
  whole_.reset();
  if (answer.ok()) return stored();
  const std::string problem = core_->problem(answer, "POST (complete a multipart upload)");
  // The answer to an attempt may be lost: then the upload is no more, and the object is there.
  if (may_be_stored_ && s3_code(answer) == "NoSuchUpload") {
    upload_id_.clear();
    lost_problem_ = problem;
    whole_ = call("HEAD", {}, &S3Upload::looked);
    whole_->is_undo = dropped_;
    start(whole_);
    return;
  }
  fail(problem);
}

void S3Upload::looked(const S3Answer& answer) {
  whole_.reset();
  if (answer.ok() && answer.content_bytes == size_bytes_) return stored();
  fail(lost_problem_);
}

void S3Upload::abort_parts() {
  const std::string id = std::exchange(upload_id_, {});
  if (id.empty() || !core_->client) return;
  const auto made = core_->call("DELETE", core_->address.object_url(key_, {{"uploadId", id}}));
  made->is_undo = true;
  made->done = [core = core_, key = key_](const S3Answer& answer) {
    if (!answer.ok() && s3_code(answer) != "NoSuchUpload")
      spdlog::warn("claim {}: an unfinished upload stays in store '{}' until it is swept: {}", key,
                   core->name, core->problem(answer, "DELETE"));
  };
  core_->client->start(made);
}

}  // namespace bellhop
