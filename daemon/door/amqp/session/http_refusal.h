// HTTP on the local socket: told apart from AMQP by its first bytes, and answered with 501 until bellhop
// speaks it.
#pragma once

#include "proto/bytes.h"

namespace bellhop {

// Whether a connection's first bytes (at least 4) begin an HTTP/1.1 request.
bool is_http(Bytes start);
// A whole response: 501, one line of JSON, connection closed.
Bytes http_refusal();

}  // namespace bellhop
