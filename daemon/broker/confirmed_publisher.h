// Publishes messages as they are, mandatory, and waits until the broker has said of each what became of it.
// For a thread that may wait.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/broker/control_connection.h"
#include "daemon/broker/incoming.h"

namespace bellhop {

struct Outgoing {
  std::string exchange, routing_key;
  Bytes header;  // the content header's payload
  Bytes body;
};

struct Outcome {
  // returned: no queue took it. nacked: the broker failed. refused: it closed the channel for it. unknown: it
  // may be there or not.
  enum class Fate { confirmed, returned, nacked, refused, unknown };
  Fate fate = Fate::unknown;
  std::string why;  // in the broker's words
};

class ConfirmedPublisher {
 public:
  // `connection` must outlive it. `on_blocked` is told once when the broker takes no publishes for now (a
  // memory or disk alarm).
  ConfirmedPublisher(ControlConnection& connection, std::function<void()> on_blocked)
      : connection_(&connection), on_blocked_(std::move(on_blocked)) {}

  // An outcome for each, in their order. A channel that the broker closes for one message is opened again; of
  // several that were under way then none is known for sure, so what may be refused goes alone. An error: the
  // connection is gone, and with it what is known of them all.
  Result<std::vector<Outcome>> publish(const std::vector<Outgoing>& messages);

 private:
  Result<void> open();
  Result<void> send(const Outgoing& message);

  ControlConnection* connection_;
  std::function<void()> on_blocked_;
  bool is_open_ = false, is_blocked_ = false;
  uint64_t published_ = 0;  // on this channel: the sequence number of the last one
};

}  // namespace bellhop
