#include "daemon/claims/s3/s3_sweep.h"

#include <future>

#include "daemon/claims/s3/iso_time.h"
#include "daemon/claims/s3/s3_doubt.h"
#include "proto/claim_frame.h"
#include "proto/xml_scan.h"

namespace bellhop {

namespace {

constexpr size_t page_bytes_max = size_t{1} << 20;
constexpr size_t pages_max = 4000;  // a service that never ends its list is not followed

// Runs one request and waits for it.
S3Answer ask(const std::shared_ptr<S3Core>& core, const std::string& method, const std::string& url,
             std::string (*doubt)(const S3Answer&)) {
  std::promise<S3Answer> promise;
  core->loop->post([core, method, url, doubt, &promise] {
    const auto call = core->call(method, url);
    call->doubt = doubt;
    call->request.answer_bytes_max = page_bytes_max;
    call->done = [&promise](S3Answer answer) { promise.set_value(std::move(answer)); };
    core->client->start(call);
  });
  return promise.get_future().get();
}

}  // namespace

UploadPage read_upload_page(std::string_view xml, std::string_view prefix) {
  UploadPage page;
  for (const std::string_view each : proto::xml_elements(xml, "Upload")) {
    UnfinishedUpload upload{proto::xml_text(each, "Key").value_or(""),
                            proto::xml_text(each, "UploadId").value_or(""),
                            proto::xml_text(each, "Initiated").value_or(""),
                            {}};
    const std::string_view name = upload.name;
    if (upload.id.empty() || !name.starts_with(prefix) || !proto::is_issued_key(name.substr(prefix.size())))
      continue;
    upload.initiated_at = parse_iso_time(upload.initiated);
    page.uploads.push_back(std::move(upload));
  }
  page.is_truncated = proto::xml_text(xml, "IsTruncated") == "true";
  page.next_key_marker = proto::xml_text(xml, "NextKeyMarker").value_or("");
  page.next_upload_id_marker = proto::xml_text(xml, "NextUploadIdMarker").value_or("");
  return page;
}

Result<std::vector<UnfinishedUpload>> list_unfinished_uploads(const std::shared_ptr<S3Core>& core) {
  std::vector<UnfinishedUpload> found;
  std::string key_marker, id_marker;
  for (size_t pages = 0; pages < pages_max; ++pages) {
    // An answer is cut at a megabyte: this many of the longest names fit.
    S3Address::Query query{{"uploads", ""}, {"max-uploads", "250"}};
    if (!core->address.prefix().empty()) query.emplace_back("prefix", core->address.prefix());
    if (!key_marker.empty()) query.emplace_back("key-marker", key_marker);
    if (!id_marker.empty()) query.emplace_back("upload-id-marker", id_marker);
    const S3Answer answer = ask(core, "GET", core->address.bucket_url(query), doubt_of_list);
    if (!answer.ok()) return Error{core->problem(answer, "GET (list unfinished uploads)")};
    UploadPage page = read_upload_page(answer.body, core->address.prefix());
    for (UnfinishedUpload& upload : page.uploads) found.push_back(std::move(upload));
    if (!page.is_truncated || page.next_key_marker.empty()) break;
    key_marker = std::move(page.next_key_marker);
    id_marker = std::move(page.next_upload_id_marker);
  }
  return found;
}

Result<void> abort_unfinished_upload(const std::shared_ptr<S3Core>& core, const UnfinishedUpload& upload) {
  const S3Answer answer =
      ask(core, "DELETE", core->address.name_url(upload.name, {{"uploadId", upload.id}}), doubt_of_delete);
  if (!answer.ok() && s3_code(answer) != "NoSuchUpload")
    return Error{core->problem(answer, "DELETE (abort an unfinished upload)")};
  return {};
}

}  // namespace bellhop
