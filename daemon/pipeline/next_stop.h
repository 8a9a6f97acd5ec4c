// Where a message with a routing slip goes (proto/README.md, "Hop"). Pure: headers in,
// destination out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/routing_table.h"
#include "proto/result.h"

namespace bellhop {

struct Destination {
  std::string exchange, routing_key;
  std::string pipeline{};  // of a step: its exchange may be missing, see with_exchange. Else empty
};

// The queue of a pipeline's step, which takes its messages through the default exchange where the broker has
// no exchange of the pipeline's name.
std::string step_queue(const std::string& pipeline, std::string_view step);
// `to`, or the step's queue if its pipeline's name is among those without an exchange.
Destination with_exchange(Destination to, const std::vector<std::string>& missing);

// What bellhop.next makes of a message: where it goes, and the slip's header fields as they are then.
struct NextStop {
  bool is_finished = false;   // the route is at its end: there is nothing to publish
  bool was_finished = false;  // it was there before: the hop is one too many
  // What the message is the result of, as far as the configuration knows it: for a count.
  const config::Pipeline* pipeline = nullptr;
  std::string result_of;
  std::string step, run_id;  // for a log: the step or stop that comes next, and the run
  Destination to;
  Buffer fields;  // encoded: the three headers of a declared route, or the itinerary
};

// The stop that a message which already carries a slip is at. Nothing: it carries none, or one that is
// finished. `preferred` is the pipeline of the route that matched, may be null. Errors: unreadable, no such
// pipeline, an exchange that is not allowed.
Result<std::optional<Destination>> current_stop(Bytes header_fields, const config::Pipeline* preferred,
                                                const config::RoutingTable& routing);

// Advances the slip by one. The pipeline of a declared route: the one `routing_key` names, else the input's,
// else the only one that has the step. A step that the configuration does not have is sent on all the same: a
// message finishes along the route that it was given. Without a slip a message that came from a step's queue
// stands at that step. Errors as above, and: no slip.
Result<NextStop> next_stop(Bytes header_fields, std::string_view routing_key,
                           const config::PipelineStep& input, const config::RoutingTable& routing,
                           std::string_view fresh_run_id, int64_t now_s);

}  // namespace bellhop
