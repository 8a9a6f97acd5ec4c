#include "daemon/claims/payload_hash.h"

#include "test/support/catch.h"

namespace bellhop {
namespace {

TEST_CASE("the digits are those that xxhsum -H2 prints", "[payload_hash]") {
  PayloadHash hash;
  CHECK(hash.hex() == "99aa06d3014798d86001c324468d497f");
  hash.update(as_bytes("a"));
  hash.update(as_bytes("b"));
  hash.update(as_bytes("c"));
  CHECK(hash.hex() == "06b05ab6733a618578af5f94892f3950");
}

}  // namespace
}  // namespace bellhop
