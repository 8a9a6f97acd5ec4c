#include "daemon/claims/s3/s3_doubt.h"

#include <algorithm>

#include "proto/xml_scan.h"

namespace bellhop {

namespace {

constexpr const char* another_status = "is no answer to this request";

bool says_done(const S3Answer& answer) {
  return answer.status >= 200 && answer.status < 300;
}

bool has(const S3Answer& answer, std::string_view element) {
  return !proto::xml_elements(answer.body, element).empty();
}

// With an error in its body, whatever the status says.
std::string told_error(const S3Answer& answer) {
  if (!has(answer, "Error")) return {};
  std::string text = "with an error in its body";
  for (const char* part : {"Code", "Message"}) {
    if (const auto found = proto::xml_text(answer.body, part); found && !found->empty())
      text += ": " + *found;
  }
  return text;
}

std::string doubt_of_result(const S3Answer& answer, const char* element) {
  if (!says_done(answer)) return {};
  if (answer.status != 200) return another_status;
  if (std::string error = told_error(answer); !error.empty()) return error;
  return has(answer, element) ? std::string()
                              : std::string("without the ") + element + " that belongs into it";
}

}  // namespace

std::string doubt_of_put(const S3Answer& answer) {
  if (!says_done(answer)) return {};
  if (answer.status != 200) return another_status;
  if (std::string error = told_error(answer); !error.empty()) return error;
  if (answer.etag.empty()) return "without the ETag of what was stored";
  return answer.body.empty() ? "" : "with a body, as if a page had been asked for";
}

bool etag_is(const S3Answer& answer, std::string_view md5_hex) {
  std::string_view etag = answer.etag;
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::equal(etag.begin(), etag.end(), md5_hex.begin(), md5_hex.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'F' ? a - 'A' + 'a' : a) == b; });
}

std::string doubt_of_begin(const S3Answer& answer) {
  if (std::string doubt = doubt_of_result(answer, "UploadId"); !doubt.empty()) return doubt;
  if (says_done(answer) && proto::xml_text(answer.body, "UploadId")->empty()) return "with an empty UploadId";
  return {};
}

std::string doubt_of_completion(const S3Answer& answer) {
  return doubt_of_result(answer, "CompleteMultipartUploadResult");
}

std::string doubt_of_head(const S3Answer& answer) {
  if (!says_done(answer)) return {};
  if (answer.status != 200) return another_status;
  return answer.content_bytes ? "" : "without the object's size";
}

std::string doubt_of_delete(const S3Answer& answer) {
  if (!says_done(answer) || answer.status == 204) return {};
  if (answer.status != 200) return another_status;
  if (std::string error = told_error(answer); !error.empty()) return error;
  return answer.body.empty() ? "" : "with a body, as if a page had been asked for";
}

std::string doubt_of_list(const S3Answer& answer) {
  return doubt_of_result(answer, "ListMultipartUploadsResult");
}

}  // namespace bellhop
