// Park: what a message that can never be delivered looks like in its queue's `.parked` queue
// (proto/README.md, "Parked message"). Pure.
#pragma once

#include <string>

#include "proto/bytes.h"
#include "proto/content_header.h"

namespace bellhop {

inline constexpr std::string_view error_header = "x-acemq-error";
inline constexpr size_t error_reason_bytes_max = 1024;

// The names of headers in which a broker says how a message died: x-death, x-first-death-*, x-last-death-*.
bool is_death_header(std::string_view name);

// What is read from such a queue was parked before: it is known by the queue's name alone, since the error
// header stays on a message that was moved back to its queue.
bool is_parked_queue(std::string_view queue);

// <queue>.parked; exclusive and server-named queues (and an unknown one) park in bellhop.parked, and so does
// what was read from a parked queue and forgotten by the broker: back in its own its consumer would get it
// once more.
std::string parked_queue_of(std::string_view queue, bool is_exclusive);

// Whether a park of it can be written at all: its headers can be read to their end.
bool is_parkable(Bytes header_payload);

// Appends the headers that stand for properties which would make a republished message vanish, spread or
// fail: CC and BCC as bellhop-cc and bellhop-bcc, a user-id other than `broker_user` as bellhop-user-id. Says
// whether the user-id has to go.
bool put_renamed_fields(Buffer& fields, const proto::ContentHeader& header, std::string_view broker_user);

// Appends the publish and the header frame of a park; the body's frames, of body_bytes as the broker sent
// them, are the caller's to append. The header payload is the broker's. Without a reason it keeps the one
// that it has. Where all of it does not fit frame_bytes_max, the reason is shortened, then what is optional
// goes: x-death and its kind, bellhop's own claim headers, the reason. False, and nothing appended: not even
// that fits, or it is not parkable.
bool put_park(Buffer& out, uint16_t channel, std::string_view parked_queue, Bytes header_payload,
              uint64_t body_bytes, std::string_view reason, std::string_view broker_user,
              size_t frame_bytes_max);

}  // namespace bellhop
