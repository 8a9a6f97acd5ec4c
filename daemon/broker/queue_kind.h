// What kind of queue a name stands for, asked without changing anything. AMQP 0-9-1 has no question for it,
// but RabbitMQ refuses a declaration with a type that no queue can have, and names the type that is there
// (inequivalence.h). A queue that is not there is not made by it.
#pragma once

#include <optional>
#include <string>

#include "daemon/broker/control_connection.h"

namespace bellhop {

struct QueueKind {
  enum class Type { unknown, classic, quorum, stream };
  Type type = Type::unknown;
  // Of the queue's own arguments. A policy may set another one, which nobody can see over AMQP.
  std::optional<int64_t> delivery_limit;
  std::string problem;  // why the type is unknown: mostly a missing permission to configure
};

// The queue must be there. An error: the connection is lost.
Result<QueueKind> kind_of_queue(ControlConnection& connection, const std::string& queue);

struct QueueCounts {
  uint32_t messages = 0, consumers = 0;
};

// Ready messages and consumers. Nothing: no such queue. An error: refused or lost, in the broker's words.
Result<std::optional<QueueCounts>> counts_of_queue(ControlConnection& connection, const std::string& queue);

}  // namespace bellhop
