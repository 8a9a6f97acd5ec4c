// The W3C's Trace Context, of which bellhop only reads the trace's id: the headers `traceparent` and
// `tracestate` belong to the application and pass through as they are.
//
//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//   version  trace id (32)              parent id (16)   flags
#pragma once

#include <string_view>

#include "proto/bytes.h"

namespace bellhop::proto {

inline constexpr std::string_view traceparent_header = "traceparent";

// The 32 hex digits of a well-formed traceparent, else nothing. A later version than 00 may have more behind
// the flags.
std::string_view trace_id_of(std::string_view traceparent);
// Of the message with this headers table.
std::string_view trace_id_in(Bytes header_fields);

}  // namespace bellhop::proto
