// What a tap (ops/taps.h) is shown of a message: a JSON object a line. Where it goes or comes from, its size,
// claim, place in its slip and trace; never its payload, nor any other header.
// The session's thread. Only when Taps::is_on: the line costs something. What waits in its channel's queue
// keeps its line until it goes on, so that a channel's lines have the order of its messages.
#pragma once

#include <string_view>

#include "daemon/door/amqp/channel.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/door/amqp/tap_line.h"

namespace bellhop {

void tell(const SessionState& state, const TapLine& line);

// The headers table of a content header's payload; empty when there is none.
Bytes table_of(Bytes content_header);

// A publish as the client made it, and what became of it.
struct TappedPublish {
  std::string_view exchange, routing_key;            // the client's
  std::string_view sent_exchange, sent_routing_key;  // where it went
  const config::Plan* plan;
  uint64_t size_bytes;  // of the payload
  const Claim* claim;   // null: its body is the payload
  Bytes slip_fields;    // of the table as sent: those of its slip are among them
  Bytes header_fields;  // the client's
};
TapLine tap_line(const SessionState& state, const TappedPublish& publish);

// The delivery that has begun to arrive on a channel; `size_bytes` of payload are in the message itself.
TapLine tap_line(const SessionState& state, const Channel& channel, uint64_t size_bytes);
// One whose payload came from a store.
TapLine tap_line(const SessionState& state, const Delivery& delivery);

}  // namespace bellhop
