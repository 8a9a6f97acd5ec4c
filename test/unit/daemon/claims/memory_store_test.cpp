#include "daemon/claims/memory_store.h"

#include "test/unit/daemon/claims/store_fixture.h"

namespace bellhop {
namespace {

using Kind = FetchFailure::Kind;

TEST_CASE("a memory store keeps what it was given until it is removed", "[memory_store]") {
  MemoryStore store("scratch");
  const Buffer payload = random_bytes(GENERATE(size_t{0}, size_t{1}, size_t{3} << 20));
  const auto claim = put_payload(store, payload);
  REQUIRE(claim.ok());
  CHECK(claim.value().store == "scratch");
  const auto found = fetch(store, claim.value().key, {payload.size(), claim.value().xxh128});
  REQUIRE(found.object != nullptr);
  CHECK(*found.object->in_memory() == payload);
  CHECK_FALSE(read_some(*found.object, payload.size(), 1).ok());
  store.remove(claim.value().key);
  CHECK(fetch(store, claim.value().key).failure.kind == Kind::missing);
}

TEST_CASE("a memory store tells damage as a filesystem store does", "[memory_store]") {
  MemoryStore store("scratch");
  const auto claim = put_payload(store, random_bytes(10));
  REQUIRE(claim.ok());
  const std::string& key = claim.value().key;
  CHECK(fetch(store, key, {11, {}}).failure.kind == Kind::corrupt);
  const auto found = fetch(store, key, {10, std::string(32, '0')});
  CHECK(found.failure.kind == Kind::corrupt);
  CHECK_THAT(found.failure.reason,
             ContainsSubstring(claim.value().xxh128) && ContainsSubstring(std::string(32, '0')));
  CHECK(fetch(store, "../key").failure.kind == Kind::not_issued);
  CHECK(fetch(store, "a-name").failure.kind == Kind::not_issued);
  CHECK_FALSE(put_payload(store, random_bytes(10), 4, 11).ok());
}

TEST_CASE("a memory store forgets a payload that nobody was told of", "[memory_store]") {
  MemoryStore store("scratch");
  auto executor = std::make_shared<TestExecutor>();
  auto upload = store.begin(3, executor);
  bool called = false;
  upload->write({1, 2, 3}, [&called](size_t) { called = true; });
  upload->finish([&called](Result<Claim>) { called = true; });
  SECTION("its upload was dropped") {
    upload.reset();
  }
  SECTION("its loop was closed") {
    executor->close();
  }
  executor->close();
  CHECK_FALSE(called);
  CHECK(store.object_count() == 0);
}

}  // namespace
}  // namespace bellhop
