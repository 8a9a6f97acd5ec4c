// A look at the messages in front of a queue, for commands that change nothing: each is taken, shown, and in
// the end given back, so that the queue holds what it held, in its order.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "config/config.h"
#include "daemon/broker/incoming.h"
#include "daemon/broker/queue_kind.h"

namespace bellhop {

struct VisitOptions {
  std::string queue;
  std::string vhost;   // empty: the one that the configuration leads to
  std::string offset;  // of a stream: where to begin; empty: at its first message
  uint64_t count = 1;  // at most so many messages, and no more than were there at the start
  bool force = false;  // also those whose next return is close to be their last
};

struct VisitedQueue {
  std::string broker, vhost;
  QueueCounts counts;
  QueueKind kind;
};

// What it does, as words for a person: "classic queue", "quorum queue", "stream", "queue".
std::string name_of(QueueKind::Type type);

// Calls `begin` once the queue is found, then `each` for every message, numbered from 1, until it returns
// false. Warnings and what went wrong go to `err`. Returns the exit code: 0, 1 when the broker or the queue
// cannot be looked at or a message was not shown for what a return costs it, 2 when the configuration has no
// credentials.
int visit_queue(const config::Config& config, const VisitOptions& options, std::ostream& err,
                const std::function<void(const VisitedQueue&)>& begin,
                const std::function<bool(const Incoming&, uint64_t number)>& each);

}  // namespace bellhop
