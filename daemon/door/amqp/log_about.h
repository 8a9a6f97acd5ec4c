// What a line of the log says of a message, so that all lines about one can be found: whose it is, where it
// goes or comes from, its id, its trace, and its claim. Pure functions; they cost something, so a caller on
// the path of each message asks logs() first.
#pragma once

#include "daemon/door/amqp/session_state.h"
#include "daemon/ops/log_line.h"
#include "proto/bytes.h"

namespace bellhop {

class Delivery;
struct PublishJob;

LogFields about(const SessionState& state, uint16_t channel, const PublishJob& job);
// A delivery on its way to the client, or a return.
LogFields about(const SessionState& state, const Delivery& delivery);
// What the message with this content header says of itself.
void add_message(LogFields& fields, Bytes content_header);

}  // namespace bellhop
