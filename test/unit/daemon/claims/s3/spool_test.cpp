// Payloads on their way into an S3 store: memory while small and while there is room, a scratch file else.
#include "daemon/claims/s3/spool.h"

#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;

namespace {

S3Core core_without_service() {
  config::S3Store store;
  store.bucket = "claims";
  store.endpoint = "http://127.0.0.1:1";
  return {"archive", store, S3Address(store, "r")};
}

Buffer all_of(const Spool& spool) {
  Buffer out(static_cast<size_t>(spool.size_bytes()));
  CHECK(spool.read(0, out.data(), out.size()).value() == out.size());
  return out;
}

}  // namespace

TEST_CASE("a small payload is in memory, and its room is given back", "[s3]") {
  const S3Core core = core_without_service();
  {
    auto spool = Spool::create(core, 1000, 1000);
    REQUIRE(spool);
    CHECK(core.memory->used_bytes() == 1000);
    CHECK(core.upload_scratch->used_bytes() == 0);
    const Buffer payload = random_bytes(1000);
    REQUIRE(spool.value()->append(Bytes(payload).first(300)));
    REQUIRE(spool.value()->append(Bytes(payload).subspan(300)));
    CHECK(all_of(*spool.value()) == payload);
    uint8_t byte = 0;
    CHECK(spool.value()->read(1000, &byte, 1).value() == 0);
  }
  CHECK(core.memory->used_bytes() == 0);
}

TEST_CASE("memory that is taken leaves a small payload to a scratch file", "[s3]") {
  const S3Core core = core_without_service();
  REQUIRE(core.memory->take(core.memory->bytes_max()));
  auto spool = Spool::create(core, 1000, 1000);
  REQUIRE(spool);
  CHECK(core.upload_scratch->used_bytes() == 1000);
  const Buffer payload = random_bytes(1000);
  REQUIRE(spool.value()->append(payload));
  CHECK(all_of(*spool.value()) == payload);
}

TEST_CASE("a large payload takes room for its window alone, and a part of it is a body", "[s3]") {
  const S3Core core = core_without_service();
  const uint64_t size = small_payload_bytes_max + 1;
  {
    auto spool = Spool::create(core, size, 4096);
    REQUIRE(spool);
    CHECK(core.upload_scratch->used_bytes() == 4096);
    const Buffer payload = random_bytes(5000);
    SpoolBody body(spool.value(), 1000, 3000);
    Buffer piece(10000);
    CHECK(body.read(0, piece.data(), piece.size()).value() == 0);  // not there yet
    REQUIRE(spool.value()->append(Bytes(payload).first(2000)));
    CHECK(body.read(0, piece.data(), piece.size()).value() == 1000);
    REQUIRE(spool.value()->append(Bytes(payload).subspan(2000)));
    CHECK(body.read(0, piece.data(), piece.size()).value() == 3000);
    CHECK(std::equal(piece.begin(), piece.begin() + 3000, payload.begin() + 1000));
    CHECK(body.read(2999, piece.data(), piece.size()).value() == 1);
  }
  CHECK(core.upload_scratch->used_bytes() == 0);
}

TEST_CASE("scratch space that is taken is an error that says how much there is", "[s3]") {
  const S3Core core = core_without_service();
  REQUIRE(core.upload_scratch->take(core.upload_scratch->bytes_max() - 100));
  CHECK_FALSE(core.upload_scratch->take(101));
  const auto spool = Spool::create(core, small_payload_bytes_max + 1, 101);
  REQUIRE_FALSE(spool);
  CHECK_THAT(spool.error(), ContainsSubstring("4294967296"));
  CHECK(core.upload_scratch->used_bytes() == core.upload_scratch->bytes_max() - 100);
}
