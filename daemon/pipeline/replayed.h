// Replayed: what a parked or dead-lettered message looks like on its way back to where it came from, the
// reverse of park.h (proto/README.md, "Replayed message"). Pure.
#pragma once

#include <optional>
#include <string_view>

#include "proto/bytes.h"

namespace bellhop {

struct Replay {
  std::string_view from_queue;   // out of which it was taken
  std::string_view at;           // now, as RFC 3339 writes it
  std::string_view broker_user;  // whom the broker takes the connection for; empty: not known
  bool without_cc = false;       // CC and BCC are kept aside: no copies go anywhere
};

// The content header's payload as it is published. Nothing: it cannot be read, or does not fit
// frame_bytes_max.
std::optional<Buffer> replayed_header(Bytes header_payload, const Replay& replay, size_t frame_bytes_max);

// Of a copy that takes the message's place in its own queue: as it was, but for what would make the copy
// spread or fail, and for what the broker adds by itself.
std::optional<Buffer> copied_header(Bytes header_payload, std::string_view broker_user,
                                    size_t frame_bytes_max);

}  // namespace bellhop
