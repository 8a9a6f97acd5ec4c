// Which stores are closed, and when.
#include "daemon/claims/store_keeper.h"

#include "daemon/claims/memory_store.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

struct Closable : MemoryStore {
  Closable(const std::string& name, int& count) : MemoryStore(name, proto::KeyRule::issued), closed(count) {}
  void close() override { ++closed; }
  int& closed;
};

}  // namespace

TEST_CASE("a store is closed when nobody else has it any more", "[claims]") {
  int one_closed = 0, two_closed = 0;
  auto one = std::make_shared<Closable>("one", one_closed);
  auto two = std::make_shared<Closable>("two", two_closed);
  StoreKeeper keeper;
  keeper.keep(one);
  keeper.keep(two);
  keeper.keep(two);  // again
  CHECK(keeper.take_unused().empty());
  const ClaimStore* const first = one.get();
  one.reset();
  {
    const auto unused = keeper.take_unused();
    REQUIRE(unused.size() == 1);
    CHECK(unused[0].get() == first);
    CHECK(keeper.take_unused().empty());  // it was taken
    CHECK(keeper.all().size() == 2);      // and is not closed yet
    unused[0]->close();
    keeper.closed(unused[0]);
  }
  CHECK(keeper.all().size() == 1);
  keeper.close_all();
  CHECK(one_closed == 1);
  CHECK(two_closed == 1);
}
