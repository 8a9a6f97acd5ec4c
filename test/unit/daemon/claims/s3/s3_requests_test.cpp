// What S3 requests are made of and what their answers mean: URLs, parts, errors, the list of
// uploads.
#include "daemon/claims/s3/digest.h"
#include "daemon/claims/s3/iso_time.h"
#include "daemon/claims/s3/s3_address.h"
#include "daemon/claims/s3/s3_answer.h"
#include "daemon/claims/s3/s3_parts.h"
#include "daemon/claims/s3/s3_signature.h"
#include "daemon/claims/s3/s3_sweep.h"
#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;

namespace {

config::S3Store store_at(const std::string& endpoint, bool path_style, const std::string& prefix = "") {
  config::S3Store store;
  store.endpoint = endpoint;
  store.bucket = "claims";
  store.prefix = prefix;
  store.path_style = path_style;
  return store;
}

S3Answer answer_of(long status, const std::string& code, const std::string& more = "") {
  S3Answer answer;
  answer.status = status;
  answer.body = "<Error><Code>" + code + "</Code><Message>because</Message>" + more + "</Error>";
  return answer;
}

S3Answer broken(CURLcode code) {
  S3Answer answer;
  answer.code = code;
  answer.transport_error = "libcurl's words";
  return answer;
}

constexpr uint64_t mib = uint64_t{1} << 20;

}  // namespace

TEST_CASE("where an object is, path style and virtual host", "[s3]") {
  const S3Address path(store_at("http://s3.example:9000", true, "orders/"), "r");
  CHECK(path.object_url("key-1") == "http://s3.example:9000/claims/orders/key-1");
  CHECK(path.bucket_url({{"uploads", ""}}) == "http://s3.example:9000/claims/?uploads=");
  const S3Address host(store_at("https://s3.example:9000", false, "orders/"), "r");
  CHECK(host.object_url("key-1") == "https://claims.s3.example:9000/orders/key-1");
  CHECK(host.bucket_url({{"uploads", ""}}) == "https://claims.s3.example:9000/?uploads=");
  CHECK(S3Address(store_at("", true), "eu-west-1").object_url("k") ==
        "https://s3.eu-west-1.amazonaws.com/claims/k");
}

TEST_CASE("queries are in order and escaped, as the signature wants them", "[s3]") {
  const S3Address address(store_at("http://h", true, "p/"), "r");
  CHECK(address.object_url("k", {{"uploadId", "2~a/b+c=="}, {"partNumber", "7"}}) ==
        "http://h/claims/p/k?partNumber=7&uploadId=2~a%2Fb%2Bc%3D%3D");
  CHECK(address.name_url("p/\xc3\xa4 b") == "http://h/claims/p/%C3%A4%20b");
  CHECK(uri_encode("a/b~c-d_e.f", false) == "a%2Fb~c-d_e.f");
}

TEST_CASE("parts cover the payload without a gap, within the service's limits", "[s3]") {
  for (const uint64_t size : {64 * mib + 1, 80 * mib, 80 * mib + 1, 200 * mib, 4096 * mib, 160000 * mib,
                              160000 * mib + 1, uint64_t{5} << 40}) {
    INFO(size);
    const PartPlan plan = plan_parts(size);
    CHECK(plan.count <= 10000);
    CHECK(plan.part_bytes >= 16 * mib);
    uint64_t at = 0;
    for (size_t part = 0; part < plan.count; ++part) {
      CHECK(plan.offset_of(part) == at);
      REQUIRE(plan.end_of(part) > at);
      CHECK(plan.end_of(part) - at <= plan.part_bytes);
      at = plan.end_of(part);
    }
    CHECK(at == size);
  }
  CHECK(plan_parts(200 * mib).count == 13);
  CHECK(complete_multipart_body({"\"a\"", "\"b\""}) ==
        "<CompleteMultipartUpload "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>"
        "<ETag>&quot;a&quot;</ETag></Part><Part><PartNumber>2</PartNumber><ETag>&quot;b&quot;</ETag></Part>"
        "</CompleteMultipartUpload>");
}

TEST_CASE("what is worth another attempt", "[s3]") {
  using Outcome = S3Outcome;
  CHECK(outcome_of(answer_of(503, "SlowDown")) == Outcome::transient);
  CHECK(outcome_of(answer_of(500, "InternalError")) == Outcome::transient);
  CHECK(outcome_of(answer_of(502, "")) == Outcome::transient);
  CHECK(outcome_of(answer_of(429, "")) == Outcome::transient);
  CHECK(outcome_of(answer_of(400, "RequestTimeout")) == Outcome::transient);
  CHECK(outcome_of(broken(CURLE_COULDNT_CONNECT)) == Outcome::transient);
  CHECK(outcome_of(broken(CURLE_RECV_ERROR)) == Outcome::transient);
  CHECK(outcome_of(broken(CURLE_PEER_FAILED_VERIFICATION)) == Outcome::denied);
  for (const char* code :
       {"AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "RequestTimeTooSkewed"})
    CHECK(outcome_of(answer_of(403, code)) == Outcome::denied);
  CHECK(outcome_of(answer_of(400, "AuthorizationHeaderMalformed")) == Outcome::denied);
  CHECK(outcome_of(answer_of(301, "PermanentRedirect")) == Outcome::denied);
  // A 200 that broke off in its body.
  S3Answer half = broken(CURLE_PARTIAL_FILE);
  half.status = 200;
  CHECK(outcome_of(half) == Outcome::transient);
}

TEST_CASE("only NoSuchKey says that an object is missing", "[s3]") {
  CHECK(outcome_of(answer_of(404, "NoSuchKey")) == S3Outcome::missing);
  CHECK(outcome_of(answer_of(404, "NoSuchBucket")) == S3Outcome::denied);
  S3Answer somebody;  // a 404 of something that is no S3 service
  somebody.status = 404;
  somebody.body = "<html>not found</html>";
  CHECK(outcome_of(somebody) == S3Outcome::denied);
}

TEST_CASE("a failure names bucket, endpoint and the service's own code", "[s3]") {
  CHECK(describe(answer_of(404, "NoSuchBucket"), "claims", "http://h", "PUT") ==
        "bucket 'claims' at http://h: PUT: 404 NoSuchBucket: because (the bucket does not exist there)");
  CHECK(describe(answer_of(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"), "b",
                 "http://h", "GET") ==
        "bucket 'b' at http://h: GET: 400 AuthorizationHeaderMalformed: because (its region is eu-west-1)");
  CHECK(describe(broken(CURLE_COULDNT_CONNECT), "b", "http://h", "GET") ==
        "bucket 'b' at http://h: GET: libcurl's words");
  const std::string odd = describe(answer_of(500, "A\nB", std::string(100000, 'x')), "b", "http://h", "GET");
  CHECK(odd.find('\n') == std::string::npos);
  CHECK(odd.size() < 500);
}

TEST_CASE("a page of unfinished uploads: only those whose names a store issues", "[s3]") {
  const UploadPage page = read_upload_page(
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>p/z</NextKeyMarker>"
      "<NextUploadIdMarker>9</NextUploadIdMarker>"
      "<Upload><Key>p/aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa</Key><UploadId>1</"
      "UploadId><Initiated>2026-11-30T12:00:01.000Z</Initiated></"
      "Upload>"
      "<Upload><Key>p/sub/of/another</Key><UploadId>2</UploadId></Upload>"
      "<Upload><Key>p/backup.tar.gz</Key><UploadId>5</UploadId></Upload>"
      "<Upload><Key>q/bbbbbbbb-1111-4111-8111-aaaaaaaaaaaa</Key><UploadId>3</UploadId></Upload>"
      "<Upload><Key>p/cccccccc-1111-4111-8111-aaaaaaaaaaaa</Key></Upload>"
      "<Upload><Key>p/dddddddd11114111811111111111dddd</Key><UploadId>4</UploadId><Initiated>yesterday</"
      "Initiated></Upload>"
      "</ListMultipartUploadsResult>",
      "p/");
  REQUIRE(page.uploads.size() == 2);
  CHECK(page.uploads[0].name == "p/aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa");
  CHECK(page.uploads[0].initiated_at == 1796040001);
  CHECK(page.uploads[1].id == "4");
  CHECK_FALSE(page.uploads[1].initiated_at);
  CHECK(page.is_truncated);
  CHECK(page.next_key_marker == "p/z");
  CHECK(page.next_upload_id_marker == "9");
}

TEST_CASE("digests as requests have them", "[s3]") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Digest hash = Digest::sha256();
  for (int again = 0; again < 2; ++again) {  // it starts anew by itself
    hash.update(as_bytes("a"));
    hash.update(as_bytes("bc"));
    CHECK(to_hex(hash.finish()) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }
  // RFC 1321 and RFC 4648.
  CHECK(to_hex(md5_of(as_bytes("abc"))) == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(to_base64(as_bytes("foobar")) == "Zm9vYmFy");
  CHECK(to_base64(as_bytes("foob")) == "Zm9vYg==");
  CHECK(to_base64({}).empty());
}

TEST_CASE("a signature of our own, by the example in AWS's documentation", "[s3]") {
  const auto added =
      sign_s3({"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
              {"GET",
               "https://examplebucket.s3.amazonaws.com/test.txt",
               {"range: bytes=0-9",
                "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
               "20130524T000000Z",
               "us-east-1"});
  REQUIRE(added.size() == 3);
  CHECK(added[2] ==
        "authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(needs_own_signature({"x-amz-a-b: 1", "x-amz-a: 2"}));
  CHECK_FALSE(needs_own_signature({"x-amz-a: 1", "x-amz-b: 2"}));
}
