// Tells whether an answer that says 200 shows that the request was carried out. Services and what stands
// before them (proxies, gateways, login pages) also say 200 when nothing was done. So success is the exact
// status, with what the operation must return. Each function says what is missing, in words that follow the
// status; empty: believe the answer. They say nothing of an answer that is no 2xx.
#pragma once

#include <string>
#include <string_view>

#include "daemon/claims/s3/s3_answer.h"

namespace bellhop {

// A PUT of an object or a part: 200 with an ETag and nothing else.
std::string doubt_of_put(const S3Answer& answer);
// Whether the ETag is the MD5 of what was sent. It need not be, if the service encrypts with KMS keys or
// counts in its own way. Then a look at the object decides.
bool etag_is(const S3Answer& answer, std::string_view md5_hex);
// A multipart upload begun: 200 with an UploadId.
std::string doubt_of_begin(const S3Answer& answer);
// A multipart upload completed: 200 with CompleteMultipartUploadResult. Services send the status first,
// blanks while they work, and then perhaps an error.
std::string doubt_of_completion(const S3Answer& answer);
// A HEAD: 200 with the object's size.
std::string doubt_of_head(const S3Answer& answer);
// A DELETE: 204; older services say 200, with nothing.
std::string doubt_of_delete(const S3Answer& answer);
// A list of unfinished uploads: 200 with ListMultipartUploadsResult.
std::string doubt_of_list(const S3Answer& answer);

}  // namespace bellhop
