// Where a message out of a parked or dead-letter queue goes back to (proto/README.md, "Replayed message").
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "config/routing_table.h"
#include "daemon/pipeline/next_stop.h"
#include "proto/result.h"

namespace bellhop {

// The queue's name without `.parked` or `.dlq`; empty when it has neither, or nobody can say whose it was
// (bellhop.parked).
std::string_view queue_beside(std::string_view queue);

// In this order: the step or stop that its slip says, where that is one which this configuration may send to;
// else the queue that `queue` belongs to, where the message was parked there by name or died in it; else the
// queue in which it died last; else the one that `queue` belongs to. Queues are sent to through the default
// exchange. An error: nothing of that is there.
Result<Destination> return_address(Bytes header_fields, std::string_view queue,
                                   const config::RoutingTable& routing);

}  // namespace bellhop
