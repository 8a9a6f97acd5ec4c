#include "daemon/cli/inspect/slip_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/cli/inspect/words.h"
#include "proto/itinerary.h"
#include "proto/routing_slip.h"

namespace bellhop {

namespace {

std::string name_of(const proto::Stop& stop) {
  if (!stop.name.empty()) return stop.name;
  return stop.exchange.empty() ? stop.routing_key : stop.exchange + "/" + stop.routing_key;
}

}  // namespace

std::optional<SlipView> slip_of(Bytes header_fields) {
  SlipView out;
  if (const auto json = proto::itinerary_text(header_fields)) {
    out.is_itinerary = true;
    const auto itinerary = proto::Itinerary::parse(*json);
    if (!itinerary) {
      out.problem = itinerary.error();
      return out;
    }
    for (const proto::Stop& stop : itinerary.value().done()) out.steps.push_back(name_of(stop));
    out.position = out.steps.size();
    for (const proto::Stop& stop : itinerary.value().steps()) out.steps.push_back(name_of(stop));
    return out;
  }
  const auto slip = proto::RoutingSlip::from(header_fields, {});
  if (!slip) return std::nullopt;
  out.steps = slip->steps();
  out.position = static_cast<size_t>(std::min<uint64_t>(slip->position(), out.steps.size()));
  out.run_id = slip->run_id();
  return out;
}

std::string in_words(const SlipView& slip) {
  if (!slip.problem.empty()) return "UNREADABLE: " + printable(slip.problem);
  std::string out;
  for (size_t i = 0; i < slip.steps.size(); ++i) {
    if (i != 0) out += " -> ";
    const std::string name = printable(slip.steps[i]);
    out += i == slip.position ? "[" + name + "]" : name;
  }
  const std::string run = slip.run_id.empty() ? "" : ", run " + printable(slip.run_id);
  if (slip.position >= slip.steps.size()) return fmt::format("{} (finished{})", out, run);
  return fmt::format("{} (step {} of {}{})", out, slip.position + 1, slip.steps.size(), run);
}

}  // namespace bellhop
