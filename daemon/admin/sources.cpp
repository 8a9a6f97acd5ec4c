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
  const NumberedNames& stores = names->stores;
  for (size_t i = 0; i < stores.size(); ++i) {
    const bool ok = !sources.meter->store(i).totals().is_failing;
    checks.push_back({"store '" + stores[i] + "'",
                      ok ? "works" : "its last three operations failed; the log says why", ok});
  }
  const bool draining = sources.is_draining();
  checks.push_back({"draining", draining ? "bellhop is shutting down" : "no", !draining});
  return checks;
}

}  // namespace bellhop
