#include "daemon/pipeline/next_stop.h"

#include <algorithm>

#include "proto/itinerary.h"
#include "proto/routing_slip.h"

namespace bellhop {

namespace {

Result<Destination> destination_of(const proto::Stop& stop, const config::RoutingTable& routing) {
  if (!routing.may_send_to(stop.exchange)) {
    return Error{"routing slip: exchange '" + stop.exchange + "' is not among slip.allowed_exchanges"};
  }
  if (stop.exchange.size() > 255 || stop.routing_key.size() > 255) {
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
  if (!has_step(pipeline, step)) {
    return Error{"routing slip: pipeline '" + pipeline->name + "' has no step '" + std::string(step) + "'"};
  }
  return Destination{pipeline->name, std::string(step)};
}

}  // namespace

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
  auto to = destination_of(step, has_step(preferred, step) ? preferred : routing.only_pipeline_with(step));
  if (!to) return Error{to.error()};
  return std::optional<Destination>{to.value()};
}

Result<NextStop> next_stop(Bytes header_fields, std::string_view routing_key,
                           const config::Pipeline* input_pipeline, const config::RoutingTable& routing,
                           std::string_view fresh_run_id, int64_t now_s) {
  NextStop next;
  if (auto json = proto::itinerary_text(header_fields)) {
    auto itinerary = proto::Itinerary::parse(*json);
    if (!itinerary) return Error{itinerary.error()};
    if (!itinerary.value().is_finished()) itinerary.value().advance(proto::utc_seconds(now_s));
    next.is_finished = itinerary.value().is_finished();
    proto::put_field(next.fields, proto::itinerary_header, itinerary.value().to_json());
    if (next.is_finished) return next;
    auto to = destination_of(*itinerary.value().current(), routing);
    if (!to) return Error{to.error()};
    next.to = to.value();
    return next;
  }
  auto slip = proto::RoutingSlip::from(header_fields, fresh_run_id);
  if (!slip) return Error{"routing slip: the message carries none"};
  if (!slip->is_finished()) slip->advance();
  next.is_finished = slip->is_finished();
  slip->to_headers(next.fields);
  if (next.is_finished) return next;
  std::string_view step = *slip->current();
  const config::Pipeline* pipeline = routing.pipeline(routing_key);
  if (pipeline == nullptr) pipeline = input_pipeline;
  if (pipeline == nullptr) pipeline = routing.only_pipeline_with(step);
  auto to = destination_of(step, pipeline);
  if (!to) return Error{to.error()};
  next.to = to.value();
  return next;
}

}  // namespace bellhop
