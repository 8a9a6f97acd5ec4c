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
  CHECK_FALSE(keeper.has_unused());
  keeper.close_unused();
  CHECK(one_closed == 0);
  one.reset();
  CHECK(keeper.has_unused());
  keeper.close_unused();
  CHECK(one_closed == 1);
  CHECK(keeper.all().size() == 1);
  keeper.close_all();
  CHECK(one_closed == 1);
  CHECK(two_closed == 1);
}
