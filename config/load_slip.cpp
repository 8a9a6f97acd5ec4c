// slip: where a carried itinerary may send a message. A header must not be able to send one anywhere.
#include <unordered_set>

#include "config/load_sections.h"
#include "config/names.h"

namespace bellhop::config {

namespace {

// Each exchange once, in the order in which they came.
class Exchanges {
 public:
  explicit Exchanges(std::vector<std::string>& list) : list_(list) {}
  void add(const std::string& exchange) {
    if (seen_.insert(exchange).second) list_.push_back(exchange);
  }

 private:
  std::vector<std::string>& list_;
  std::unordered_set<std::string> seen_;
};

// The exchanges that the configuration itself names. The default exchange reaches every queue, so it has to
// be written in slip.allowed_exchanges.
void add_named(const Config& config, Exchanges& out) {
  const auto add = [&out](const std::string& exchange) {
    if (!exchange.empty()) out.add(exchange);
  };
  for (const Pipeline& pipeline : config.pipelines) add(pipeline.name);
  for (const Route& route : config.routes) {
    if (route.match_exchange) add(*route.match_exchange);
    if (route.to_exchange) add(*route.to_exchange);
    for (const ItineraryStop& stop : route.slip_itinerary) add(stop.exchange);
  }
}

}  // namespace

void load_slip(Section& root, Config& config) {
  Exchanges named(config.slip_allowed_exchanges);
  add_named(config, named);
  const auto value = root.find("slip");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  const auto allowed = section.find("allowed_exchanges");
  const auto items = allowed ? allowed->sequence("exchanges") : std::nullopt;
  if (items) {
    config.slip_allowed_exchanges.clear();
    Exchanges written(config.slip_allowed_exchanges);
    for (const Value& item : *items) {
      const auto exchange = item.text();
      if (exchange && check_exchange(item, *exchange)) written.add(*exchange);
    }
  }
  section.finish();
}

}  // namespace bellhop::config
