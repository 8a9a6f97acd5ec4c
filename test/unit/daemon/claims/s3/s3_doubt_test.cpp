// Which answers of an S3 service are to be believed, and how long it asks to be left alone.
#include "daemon/claims/s3/s3_doubt.h"

#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;

namespace {

S3Answer answer_of(long status, const std::string& body, const std::string& etag = "") {
  S3Answer answer;
  answer.status = status;
  answer.body = body;
  answer.etag = etag;
  return answer;
}

const std::string error_body = "<Error><Code>InternalError</Code><Message>We failed</Message></Error>";
const std::string md5 = "900150983cd24fb0d6963f7d28e17f72";

S3Answer busy(const std::string& retry_after, const std::string& date = "") {
  S3Answer answer = answer_of(503, "");
  answer.retry_after = retry_after;
  answer.date = date;
  return answer;
}

}  // namespace

TEST_CASE("a PUT is believed with 200, an ETag and nothing else", "[s3]") {
  CHECK(doubt_of_put(answer_of(200, "", "\"e\"")).empty());
  CHECK_THAT(doubt_of_put(answer_of(200, "")), ContainsSubstring("without the ETag"));
  CHECK_THAT(doubt_of_put(answer_of(200, error_body, "\"e\"")),
             ContainsSubstring("InternalError: We failed"));
  CHECK_FALSE(doubt_of_put(answer_of(200, "<html>", "\"e\"")).empty());
  for (const long status : {201, 202, 204, 206})
    CHECK_FALSE(doubt_of_put(answer_of(status, "", "\"e\"")).empty());
  CHECK(doubt_of_put(answer_of(503, error_body)).empty());  // not in doubt: refused
}

TEST_CASE("an ETag is compared without its quotes and in either case", "[s3]") {
  CHECK(etag_is(answer_of(200, "", "\"" + md5 + "\""), md5));
  CHECK(etag_is(answer_of(200, "", "900150983CD24FB0D6963F7D28E17F72"), md5));
  CHECK_FALSE(etag_is(answer_of(200, "", "\"" + md5 + "-1\""), md5));
  CHECK_FALSE(etag_is(answer_of(200, "", "\""), md5));
  CHECK_FALSE(etag_is(answer_of(200, ""), md5));
}

TEST_CASE("a completion is believed with its result, at whatever length it is cut", "[s3]") {
  const std::string result =
      "  \n<s3:CompleteMultipartUploadResult><ETag>x</ETag></s3:CompleteMultipartUploadResult>";
  for (size_t size = 0; size < result.size(); ++size)
    CHECK_FALSE(doubt_of_completion(answer_of(200, result.substr(0, size))).empty());
  CHECK(doubt_of_completion(answer_of(200, result)).empty());
  CHECK_FALSE(doubt_of_completion(answer_of(200, result + error_body)).empty());
  CHECK_FALSE(doubt_of_completion(answer_of(202, result)).empty());
}

TEST_CASE("what the other operations must return", "[s3]") {
  CHECK(doubt_of_begin(answer_of(200, "<UploadId>1</UploadId>")).empty());
  CHECK_FALSE(doubt_of_begin(answer_of(200, "<UploadId/>")).empty());
  CHECK_FALSE(doubt_of_begin(answer_of(200, "<html/>")).empty());
  S3Answer head = answer_of(200, "");
  CHECK_FALSE(doubt_of_head(head).empty());
  head.content_bytes = 0;
  CHECK(doubt_of_head(head).empty());
  CHECK(doubt_of_delete(answer_of(204, "")).empty());
  CHECK(doubt_of_delete(answer_of(200, "")).empty());
  CHECK_FALSE(doubt_of_delete(answer_of(200, "<html>")).empty());
  CHECK_FALSE(doubt_of_delete(answer_of(202, "")).empty());
  CHECK(doubt_of_list(answer_of(200, "<ListMultipartUploadsResult/>")).empty());
  CHECK_FALSE(doubt_of_list(answer_of(200, "")).empty());
}

TEST_CASE("what is in doubt is worth another attempt, and says why", "[s3]") {
  S3Answer answer = answer_of(200, "");
  CHECK(answer.ok());
  answer.doubt = doubt_of_put(answer);
  CHECK_FALSE(answer.ok());
  CHECK(outcome_of(answer) == S3Outcome::transient);
  CHECK(describe(answer, "b", "http://h", "PUT") ==
        "bucket 'b' at http://h: PUT: 200 without the ETag of what was stored");
}

TEST_CASE("Retry-After in seconds and as a date by the service's clock, at most a minute", "[s3]") {
  CHECK(retry_after_ms(busy("")) == 0);
  CHECK(retry_after_ms(busy("7")) == 7000);
  CHECK(retry_after_ms(busy("3600")) == 60000);
  CHECK(retry_after_ms(busy("99999999999999999999999")) == 60000);
  CHECK(retry_after_ms(busy("-5")) == 0);
  CHECK(retry_after_ms(busy("soon")) == 0);
  CHECK(retry_after_ms(busy("7 days")) == 0);
  const std::string noon = "Mon, 30 Nov 2026 12:00:00 GMT";
  CHECK(retry_after_ms(busy("Mon, 30 Nov 2026 12:00:09 GMT", noon)) == 9000);
  CHECK(retry_after_ms(busy("Tue, 01 Dec 2026 12:00:00 GMT", noon)) == 60000);
  CHECK(retry_after_ms(busy("Mon, 30 Nov 2026 11:00:00 GMT", noon)) == 0);
  CHECK(retry_after_ms(busy("Sun, 06 Nov 1994 08:49:37 GMT")) == 0);
}
