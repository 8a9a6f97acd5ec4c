#include "daemon/cli/inspect/return_cost.h"

#include <algorithm>

namespace bellhop {

namespace {

constexpr std::pair<int, int> first_with_a_limit{4, 0}, first_without_cost{4, 3};
constexpr int64_t default_limit = 20;

// So few returns left are called close: a quarter of them, two at least.
int64_t close_from(int64_t limit) {
  return std::max<int64_t>(limit / 4, 2);
}

}  // namespace

ReturnCost cost_of_return(const QueueKind& kind, std::pair<int, int> broker_version) {
  using Type = QueueKind::Type;
  ReturnCost out;
  out.counts =
      (kind.type == Type::quorum || kind.type == Type::unknown) && broker_version < first_without_cost;
  if (!out.counts) return out;
  out.limit = kind.delivery_limit;
  if (!out.limit && broker_version >= first_with_a_limit) out.limit = default_limit;
  // -1 is no limit from 4.0 on, and before the smallest of all.
  if (out.limit && *out.limit < 0 && broker_version >= first_with_a_limit) out.limit.reset();
  return out;
}

Wear wear_of(const ReturnCost& cost, int64_t deliveries) {
  if (!cost.counts || !cost.limit) return Wear::fine;
  const int64_t left = *cost.limit - deliveries;
  if (left <= 0) return Wear::last;
  return left <= close_from(*cost.limit) ? Wear::close : Wear::fine;
}

bool is_always_close(const ReturnCost& cost) {
  return wear_of(cost, 0) != Wear::fine;
}

}  // namespace bellhop
