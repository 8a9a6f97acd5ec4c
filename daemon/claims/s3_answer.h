// What came of one attempt at an S3 request, and what it means.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string>

namespace bellhop {

struct S3Answer {
  CURLcode code = CURLE_OK;
  std::string transport_error;  // libcurl's words, when there is no answer
  long status = 0;              // 0: no answer came
  std::string etag;             // with its quotes, as it goes into If-Match
  std::optional<uint64_t> content_bytes;
  std::string content_range;
  std::string body;       // an error's, or a small answer's; at most 1 MiB
  bool sent_all = false;  // the whole request was handed to the connection
  bool stalled = false;   // ended by bellhop: nothing moved for the store's `timeout`
  bool endless = false;   // ended by bellhop: its body went beyond what is kept

  bool ok() const { return code == CURLE_OK && status >= 200 && status < 300; }
};

// transient: worth another attempt. missing: the service says that it has no such object. denied: no attempt
// will do better until somebody changes something.
enum class S3Outcome { ok, transient, missing, denied };

S3Outcome outcome_of(const S3Answer& answer);

// The service's own code (NoSuchBucket, SlowDown, ...), empty when it gave none.
std::string s3_code(const S3Answer& answer);

// "bucket 'b' at http://host: PUT: 403 SignatureDoesNotMatch: <the service's message>", or libcurl's words.
// Precondition: !answer.ok().
std::string describe(const S3Answer& answer, const std::string& bucket, const std::string& endpoint,
                     const std::string& method);

}  // namespace bellhop
