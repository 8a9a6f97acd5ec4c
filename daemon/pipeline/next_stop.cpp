#include "daemon/pipeline/next_stop.h"

#include <algorithm>

#include "proto/itinerary.h"
#include "proto/routing_slip.h"

namespace bellhop {

namespace {

constexpr size_t short_string_bytes_max = 255;  // AMQP 0-9-1 section 4.2.5.3

Result<Destination> destination_of(const proto::Stop& stop, const config::RoutingTable& routing) {
  if (!routing.may_send_to(stop.exchange)) {
    // The libraries for .NET send to queues, and to nothing else.
    const bool by_queue = stop.exchange.empty();
    return Error{"routing slip: " +
                 (by_queue
                      ? "the default exchange, by which an itinerary names queue '" + stop.routing_key + "', "
                      : "exchange '" + stop.exchange + "' ") +
                 "is not among slip.allowed_exchanges" +
                 (by_queue ? ": add \"\" there if itineraries may send to any queue" : "")};
  }
  if (stop.exchange.size() > short_string_bytes_max || stop.routing_key.size() > short_string_bytes_max) {
    return Error{"routing slip: an exchange and a routing key have at most 255 bytes"};
  }
  return Destination{stop.exchange, stop.routing_key};
}

bool has_step(const config::Pipeline* pipeline, std::string_view step) {
  return pipeline != nullptr &&
         std::find(pipeline->steps.begin(), pipeline->steps.end(), step) != pipeline->steps.end();
}

Result<Destination> destination_of(std::string_view step, const config::Pipeline* pipeline) {
  if (pipeline == nullptr) {
    return Error{"routing slip: no pipeline, or more than one, has the step '" + std::string(step) +
                 "': name the pipeline in the routing key"};
  }
  if (step_queue(pipeline->name, step).size() > short_string_bytes_max) {
    return Error{"routing slip: a step of pipeline '" + pipeline->name +
                 "' has too long a name: its queue's would have more than 255 bytes"};
  }
  return Destination{pipeline->name, std::string(step), pipeline->name};
}

// The route that a message without a slip is given where it stands.
std::optional<proto::RoutingSlip> slip_at(const config::PipelineStep& input, std::string_view fresh_run_id) {
  if (input.step == nullptr) return std::nullopt;
  auto slip = proto::RoutingSlip::start_of(input.pipeline->steps, std::string(fresh_run_id));
  if (!slip) return std::nullopt;
  const auto& steps = input.pipeline->steps;
  slip.value().advance_to(
      static_cast<uint64_t>(std::find(steps.begin(), steps.end(), *input.step) - steps.begin()));
  return std::move(slip.value());
}

}  // namespace

std::string step_queue(const std::string& pipeline, std::string_view step) {
  return pipeline + "." + std::string(step);
}

Destination with_exchange(Destination to, const std::vector<std::string>& missing) {
  if (to.pipeline.empty() || std::find(missing.begin(), missing.end(), to.pipeline) == missing.end())
    return to;
  return {"", step_queue(to.pipeline, to.routing_key), to.pipeline};
}

Result<std::optional<Destination>> current_stop(Bytes header_fields, const config::Pipeline* preferred,
                                                const config::RoutingTable& routing) {
  if (auto json = proto::itinerary_text(header_fields)) {
    auto itinerary = proto::Itinerary::parse(*json);
    if (!itinerary) return Error{itinerary.error()};
    const proto::Stop* stop = itinerary.value().current();
    if (stop == nullptr) return std::optional<Destination>{};
    auto to = destination_of(*stop, routing);
    if (!to) return Error{to.error()};
    return std::optional<Destination>{to.value()};
  }
  auto slip = proto::RoutingSlip::from(header_fields, {});
  if (!slip || slip->is_finished()) return std::optional<Destination>{};
  std::string_view step = *slip->current();
  // Its publish may be lost without a word where nobody takes it: only a step that is known is gone to.
  auto to = destination_of(step, has_step(preferred, step) ? preferred : routing.only_pipeline_with(step));
  if (!to) return Error{to.error()};
  return std::optional<Destination>{to.value()};
}

Result<NextStop> next_stop(Bytes header_fields, std::string_view routing_key,
                           const config::PipelineStep& input, const config::RoutingTable& routing,
                           std::string_view fresh_run_id, int64_t now_s) {
  NextStop next;
  if (auto json = proto::itinerary_text(header_fields)) {
    auto itinerary = proto::Itinerary::parse(*json);
    if (!itinerary) return Error{itinerary.error()};
    next.was_finished = itinerary.value().is_finished();
    if (!next.was_finished) itinerary.value().advance(proto::utc_seconds(now_s));
    next.is_finished = itinerary.value().is_finished();
    proto::put_field(next.fields, proto::itinerary_header, itinerary.value().to_json());
    if (next.is_finished) return next;
    auto to = destination_of(*itinerary.value().current(), routing);
    if (!to) return Error{to.error()};
    next.step = itinerary.value().current()->name;
    next.to = to.value();
    return next;
  }
  auto slip = proto::RoutingSlip::from(header_fields, fresh_run_id);
  if (!slip) slip = slip_at(input, fresh_run_id);
  if (!slip) {
    return Error{
        "routing slip: the message has none, and bellhop-ack names no delivery from a step's queue; pass on "
        "the "
        "headers of the input"};
  }
  next.was_finished = slip->is_finished();
  if (!next.was_finished) {
    next.result_of = *slip->current();
    slip->advance();
  }
  next.is_finished = slip->is_finished();
  slip->to_headers(next.fields);
  next.run_id = slip->run_id();
  next.pipeline = routing.pipeline(routing_key);
  if (next.pipeline == nullptr) next.pipeline = input.pipeline;
  if (next.is_finished) {
    if (next.pipeline == nullptr) next.pipeline = routing.only_pipeline_with(next.result_of);
    return next;
  }
  std::string_view step = *slip->current();
  next.step = step;
  if (next.pipeline == nullptr) next.pipeline = routing.only_pipeline_with(step);
  auto to = destination_of(step, next.pipeline);
  if (!to) return Error{to.error()};
  next.to = to.value();
  return next;
}

}  // namespace bellhop
