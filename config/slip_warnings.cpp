#include "config/slip_warnings.h"

#include <algorithm>
#include <set>

namespace bellhop::config {

std::vector<std::string> slip_warnings(const Config& config) {
  std::vector<std::string> warnings;
  const auto& allowed = config.slip_allowed_exchanges;
  for (const Route& route : config.routes) {
    std::set<std::string> told;
    // The first stop is the route's own doing; a hop follows what the message carries.
    for (size_t at = 1; at < route.slip_itinerary.size(); ++at) {
      const std::string& exchange = route.slip_itinerary[at].exchange;
      if (std::find(allowed.begin(), allowed.end(), exchange) != allowed.end() ||
          !told.insert(exchange).second)
        continue;
      const std::string named = exchange.empty() ? "the default exchange" : "exchange '" + exchange + "'";
      warnings.push_back("the itinerary of route '" + route.name + "' goes on to " + named +
                         ", which slip.allowed_exchanges does not have: hops to it are refused; add \"" +
                         exchange + "\" to slip.allowed_exchanges");
    }
  }
  return warnings;
}

}  // namespace bellhop::config
