#include "daemon/pipeline/claim_headers.h"

#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using bellhop::test::from_hex;

TEST_CASE("claim headers count only if their key is the body's", "[claim_headers]") {
  Buffer fields;
  proto::put_field(fields, "bellhop-claim-key", "k1");
  proto::put_field(fields, "bellhop-claim-store", "archive");
  proto::put_field(fields, "bellhop-claim-size", int64_t{12});
  proto::put_field(fields, "bellhop-claim-xxh128", "ab");
  const ClaimHeaders own = claim_headers_of(fields, "k1");
  CHECK(own.are_there);
  CHECK(own.store == "archive");
  CHECK(own.expected.size_bytes == 12);
  CHECK(own.expected.xxh128 == "ab");
  const ClaimHeaders copied = claim_headers_of(fields, "k2");
  CHECK_FALSE(copied.are_there);
  CHECK(copied.store.empty());
  CHECK_FALSE(copied.expected.xxh128);
  CHECK_FALSE(claim_headers_of({}, "").are_there);
}

TEST_CASE("a body is a claim, or it is not", "[claim_headers]") {
  CHECK(claim_key_of(from_hex("AC0101'key'")) == "key");
  CHECK(claim_key_of(from_hex("AC0101")) == "");
  CHECK_FALSE(claim_key_of(from_hex("AC0100'key'")));
  CHECK_FALSE(claim_key_of(from_hex("'raw'")));
  Buffer large = from_hex("AC0101");
  large.resize(65537, 'k');
  CHECK_FALSE(claim_key_of(large));
}
