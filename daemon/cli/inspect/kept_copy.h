// The way out for a message that its broker would drop if it came back once more (return_cost.h): a copy
// takes its place.
#pragma once

#include <string>

#include "daemon/broker/confirmed_publisher.h"
#include "daemon/broker/queue_reader.h"

namespace bellhop {

// Puts a copy to the queue's end, with a delivery count of 0, and acknowledges the message once the broker
// has confirmed it. An error says why not; the message then is as it was. Waits.
Result<void> put_to_the_end(ControlConnection& connection, ConfirmedPublisher& publisher, QueueReader& reader,
                            const std::string& queue, const Incoming& message);

}  // namespace bellhop
