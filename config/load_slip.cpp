// slip: where a carried itinerary may send a message. A header must not be able to send one anywhere.
#include <algorithm>

#include "config/load_sections.h"
#include "config/names.h"

namespace bellhop::config {

namespace {

void add_once(std::vector<std::string>& list, const std::string& exchange) {
  if (std::find(list.begin(), list.end(), exchange) == list.end()) list.push_back(exchange);
}

// The exchanges that the configuration itself names. The default exchange reaches every queue, so it has to
// be written in slip.allowed_exchanges.
std::vector<std::string> named_exchanges(const Config& config) {
  std::vector<std::string> out;
  const auto add = [&out](const std::string& exchange) {
    if (!exchange.empty()) add_once(out, exchange);
  };
  for (const Pipeline& pipeline : config.pipelines) add(pipeline.name);
  for (const Route& route : config.routes) {
    if (route.match_exchange) add(*route.match_exchange);
    if (route.to_exchange) add(*route.to_exchange);
    for (const ItineraryStop& stop : route.slip_itinerary) add(stop.exchange);
  }
  return out;
}

}  // namespace

void load_slip(Section& root, Config& config) {
  config.slip_allowed_exchanges = named_exchanges(config);
  const auto value = root.find("slip");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  if (const auto allowed = section.find("allowed_exchanges")) {
    if (const auto items = allowed->sequence("exchanges")) {
      config.slip_allowed_exchanges.clear();
      for (const Value& item : *items) {
        const auto exchange = item.text();
        if (exchange && check_exchange(item, *exchange)) add_once(config.slip_allowed_exchanges, *exchange);
      }
    }
  }
  section.finish();
}

}  // namespace bellhop::config
