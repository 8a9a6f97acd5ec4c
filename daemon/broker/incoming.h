// What a broker sends on a control connection's further channels, one whole thing at a time: a method, or a
// message with its header and body. For a thread that may wait.
#pragma once

#include <optional>
#include <string>

#include "proto/bytes.h"
#include "proto/result.h"

struct amqp_connection_state_t_;  // rabbitmq-c's

namespace bellhop {

struct Incoming {
  enum class Kind {
    message,
    returned,
    none_left,
    acked,
    nacked,
    cancelled,
    channel_closed,
    blocked,
    unblocked,
    other
  };
  Kind kind = Kind::other;
  uint16_t channel = 0;
  uint64_t tag = 0;       // of a message (delivery tag), of a confirm (publish sequence number)
  bool multiple = false;  // of a confirm
  bool redelivered = false;
  std::string exchange, routing_key;
  uint16_t code = 0;  // why it was returned, or the channel closed
  std::string text;
  Buffer header;  // a message's content header, as the frame's payload (proto/content_header.h)
  Buffer body;
};

// Nothing: none came in time. An error: the connection is gone, and why. A channel that the broker closes is
// answered, so it can be opened again.
Result<std::optional<Incoming>> next_incoming(amqp_connection_state_t_* state, uint32_t timeout_ms);

// Opens a channel. The error is the broker's.
Result<void> open_channel(amqp_connection_state_t_* state, uint16_t channel);

}  // namespace bellhop
