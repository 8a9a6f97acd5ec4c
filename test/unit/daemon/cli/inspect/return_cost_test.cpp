#include "daemon/cli/inspect/return_cost.h"

#include "test/support/catch.h"

using namespace bellhop;

namespace {

ReturnCost cost(QueueKind::Type type, std::optional<int64_t> limit, std::pair<int, int> version) {
  QueueKind kind;
  kind.type = type;
  kind.delivery_limit = limit;
  return cost_of_return(kind, version);
}

}  // namespace

TEST_CASE("a return counts on a quorum queue before RabbitMQ 4.3", "[return_cost]") {
  using Type = QueueKind::Type;
  CHECK(cost(Type::quorum, {}, {3, 10}).counts);
  CHECK(cost(Type::quorum, {}, {4, 0}).counts);
  CHECK(cost(Type::quorum, {}, {4, 2}).counts);
  CHECK_FALSE(cost(Type::quorum, 5, {4, 3}).counts);
  CHECK_FALSE(cost(Type::classic, {}, {3, 10}).counts);
  CHECK_FALSE(cost(Type::stream, {}, {3, 10}).counts);
  CHECK(cost(Type::unknown, {}, {3, 10}).counts);
  CHECK(cost(Type::quorum, {}, {0, 0}).counts);
}

TEST_CASE("the limit is the queue's own, or 20 from RabbitMQ 4.0 on", "[return_cost]") {
  using Type = QueueKind::Type;
  CHECK_FALSE(cost(Type::quorum, {}, {3, 13}).limit);
  CHECK(cost(Type::quorum, {}, {4, 0}).limit == 20);
  CHECK(cost(Type::quorum, 7, {4, 0}).limit == 7);
  CHECK_FALSE(cost(Type::quorum, -1, {4, 0}).limit);
  CHECK(is_always_close(cost(Type::quorum, -1, {3, 10})));
}

TEST_CASE("the fewer returns are left the closer a message is to its end", "[return_cost]") {
  const ReturnCost twenty{true, 20};
  CHECK(wear_of(twenty, 0) == Wear::fine);
  CHECK(wear_of(twenty, 14) == Wear::fine);
  CHECK(wear_of(twenty, 15) == Wear::close);
  CHECK(wear_of(twenty, 19) == Wear::close);
  CHECK(wear_of(twenty, 20) == Wear::last);
  CHECK(wear_of(twenty, 25) == Wear::last);
  const ReturnCost two{true, 2}, three{true, 3}, none{true, {}}, free{false, 2};
  CHECK(is_always_close(two));
  CHECK_FALSE(is_always_close(three));
  CHECK(wear_of(none, 1000) == Wear::fine);
  CHECK(wear_of(free, 1000) == Wear::fine);
}
