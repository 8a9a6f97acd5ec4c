// Park: what a message that can never be delivered looks like in its queue's `.parked` queue
// (proto/README.md, "Parked message"). Pure.
#pragma once

#include <string>

#include "proto/bytes.h"
#include "proto/content_header.h"

namespace bellhop {

inline constexpr std::string_view error_header = "x-acemq-error";
inline constexpr size_t error_reason_bytes_max = 1024;

// <queue>.parked; exclusive and server-named queues (and an unknown one) park in bellhop.parked.
std::string parked_queue_of(std::string_view queue, bool is_exclusive);

// Appends the headers that stand for properties which would make a republished message vanish, spread or
// fail: CC and BCC as bellhop-cc and bellhop-bcc, a user-id other than `broker_user` as bellhop-user-id. Says
// whether the user-id has to go.
bool put_renamed_fields(Buffer& fields, const proto::ContentHeader& header, std::string_view broker_user);

// Appends the publish, header and body frames of a park of `payload` (the body as the broker sent it). The
// header is the broker's. False: the header does not fit, the reason is shortened and tried again by the
// caller.
bool put_park(Buffer& out, uint16_t channel, std::string_view parked_queue, Bytes header_payload, Bytes body,
              std::string_view reason, std::string_view broker_user, size_t frame_bytes_max);

}  // namespace bellhop
