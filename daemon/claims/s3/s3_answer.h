// What came of one attempt at an S3 request, and what it means.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace bellhop {

struct S3Answer {
  CURLcode code = CURLE_OK;
  std::string transport_error;  // libcurl's words, when there is no answer
  long status = 0;              // 0: no answer came
  std::string etag;             // with its quotes, as it goes into If-Match
  std::optional<uint64_t> content_bytes;
  std::string content_range, content_type, content_encoding;
  std::string encryption;                 // x-amz-server-side-encryption
  std::string date;                       // the service's clock, as it wrote it
  std::string retry_after;                // as the service wrote it
  std::string last_modified, expiration;  // of an object; x-amz-expiration names the bucket's rule and a date
  std::string body;                       // an error's, or a small answer's; at most what its request keeps
  bool sent_all = false;                  // the whole request was handed to the connection
  bool stalled = false;                   // ended by bellhop: nothing moved for the store's `timeout`
  bool endless = false;                   // ended by bellhop: it went beyond what is kept
  bool unsent = false;                    // no attempt was made: transport_error says why
  std::string doubt;  // why a 2xx does not show that the request was carried out (s3_doubt.h)

  // Carried out, and shown to be.
  bool ok() const { return code == CURLE_OK && status >= 200 && status < 300 && doubt.empty(); }
};

// transient: worth another attempt. missing: the service says that it has no such object. denied: no attempt
// can do better until somebody changes something.
enum class S3Outcome { ok, transient, missing, denied };

S3Outcome outcome_of(const S3Answer& answer);

// The service's own code (NoSuchBucket, SlowDown, ...), empty when it gave none.
std::string s3_code(const S3Answer& answer);

// "Mon, 30 Nov 2026 12:00:00 GMT", in seconds since 1970.
std::optional<std::time_t> http_date(const std::string& text);

// For how many ms the service asks to be left alone (Retry-After, RFC 9110 section 10.2.3: seconds, or a date
// by its own clock), at most a minute. 0: it does not say.
uint64_t retry_after_ms(const S3Answer& answer);

// What happened, in the service's words or libcurl's: "503 SlowDown: Please reduce your request rate."
// Precondition: !answer.ok().
std::string words_of(const S3Answer& answer);

// Makes a text printable, and no longer than anybody reads.
std::string shown(std::string text);
// Whether a text may stand in a request's header: printable ASCII.
bool can_be_header(std::string_view text);

// "bucket 'b' at http://host: PUT: 403 SignatureDoesNotMatch: <the service's message>", or libcurl's words.
// Precondition: !answer.ok().
std::string describe(const S3Answer& answer, const std::string& bucket, const std::string& endpoint,
                     const std::string& method);

}  // namespace bellhop
