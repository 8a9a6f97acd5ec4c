#include "daemon/admin/sources.h"

#include <algorithm>

namespace bellhop {

std::vector<ReadyCheck> ready_checks(const AdminSources& sources) {
  std::vector<ReadyCheck> checks;
  const Meter::BrokerState broker = sources.meter->broker();
  checks.push_back({"broker",
                    broker == Meter::BrokerState::up     ? "reached"
                    : broker == Meter::BrokerState::down ? "no broker can be reached; the log says why"
                                                         : "not reached yet, bellhop is trying",
                    broker == Meter::BrokerState::up});
  const auto names = sources.meter->names();
  for (const config::Store& store : sources.config()->stores) {
    const auto number = names->stores.number(store.name);
    const bool ok = !number || !sources.meter->store(*number).totals().is_failing;
    checks.push_back({"store '" + store.name + "'",
                      ok ? "works" : "its last three operations failed; the log says why", ok});
  }
  const bool draining = sources.is_draining();
  checks.push_back({"draining", draining ? "bellhop is shutting down" : "no", !draining});
  return checks;
}

}  // namespace bellhop
