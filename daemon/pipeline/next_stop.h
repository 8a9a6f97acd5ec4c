// Where a message with a routing slip goes (proto/README.md, "Hop"). Pure: headers in,
// destination out.
#pragma once

#include <optional>
#include <string>

#include "config/routing_table.h"
#include "proto/result.h"

namespace bellhop {

struct Destination {
  std::string exchange, routing_key;
};

// What bellhop.next makes of a message: where it goes, and the slip's header fields as they are then.
struct NextStop {
  bool is_finished = false;  // the route is at its end: there is nothing to publish
  Destination to;
  Buffer fields;  // encoded: the three headers of a declared route, or the itinerary
};

// The stop that a message which already carries a slip is at. Nothing: it carries none, or one that is
// finished. `preferred` is the pipeline of the route that matched, may be null. Errors: unreadable, no such
// pipeline, an exchange that is not allowed.
Result<std::optional<Destination>> current_stop(Bytes header_fields, const config::Pipeline* preferred,
                                                const config::RoutingTable& routing);

// Advances the slip by one. The pipeline of a declared route: the one `routing_key` names, else
// `input_pipeline`, else the only one that has the step. Errors as above, and: no slip.
Result<NextStop> next_stop(Bytes header_fields, std::string_view routing_key,
                           const config::Pipeline* input_pipeline, const config::RoutingTable& routing,
                           std::string_view fresh_run_id, int64_t now_s);

}  // namespace bellhop
