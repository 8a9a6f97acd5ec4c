#include "daemon/pipeline/return_address.h"

#include <algorithm>

#include "daemon/pipeline/deaths.h"
#include "daemon/pipeline/park.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr std::string_view dead_letter_suffix = ".dlq", parked_suffix = ".parked";

Destination queue_named(std::string_view queue) {
  return {"", std::string(queue)};
}

}  // namespace

std::string_view queue_beside(std::string_view queue) {
  if (queue == parked_queue_of("", false)) return {};
  for (const std::string_view suffix : {parked_suffix, dead_letter_suffix}) {
    if (queue.ends_with(suffix)) return queue.substr(0, queue.size() - suffix.size());
  }
  return {};
}

Result<Destination> return_address(Bytes header_fields, std::string_view queue,
                                   const config::RoutingTable& routing) {
  const std::string_view beside = queue_beside(queue);
  // A slip that leads nowhere here is no reason to keep the message: where it came from is known as well.
  const auto stop = current_stop(header_fields, routing.step_of_queue(beside).pipeline, routing);
  if (stop && stop.value()) return *stop.value();
  const auto deaths = deaths_of(header_fields);
  const bool died_beside =
      std::any_of(deaths.begin(), deaths.end(), [&](const Death& each) { return each.queue == beside; });
  // Who writes this header sends to the queue's own neighbour, whatever became of the message before.
  if (!beside.empty() && (died_beside || proto::find_field(header_fields, error_header)))
    return queue_named(beside);
  for (const Death& death : deaths) {
    if (death.queue != queue) return queue_named(death.queue);
  }
  if (!beside.empty()) return queue_named(beside);
  return Error{stop ? "nothing says where it came from: neither a slip, nor x-death, nor the queue's name"
                    : stop.error() + "; and neither x-death nor the queue's name says where it came from"};
}

}  // namespace bellhop
