// What it costs to give a message back that was only looked at. A quorum queue before RabbitMQ 4.3 counts
// each return as a delivery, however it comes about (a nack, a closed channel), and drops or dead-letters
// what came back too often: 20 times, from RabbitMQ 4.0 on, where nothing else is set. Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/broker/queue_kind.h"

namespace bellhop {

struct ReturnCost {
  bool counts = false;
  std::optional<int64_t> limit;  // how often a message may come back; nothing: none that can be seen
};

// An unknown type may be a quorum queue. {0, 0} is an unknown version.
ReturnCost cost_of_return(const QueueKind& kind, std::pair<int, int> broker_version);

// fine: look. close: few returns are left. last: the next return is the message's end.
enum class Wear { fine, close, last };
// `deliveries`: the message's x-delivery-count, that is how often it came back already.
Wear wear_of(const ReturnCost& cost, int64_t deliveries);
// Any message would be close to it: nothing can be looked at without a risk.
bool is_always_close(const ReturnCost& cost);

}  // namespace bellhop
