#include "daemon/admin/sources.h"

#include <algorithm>

#include "daemon/ops/waits.h"

namespace bellhop {

namespace {

const char* text_of(Meter::BrokerState broker) {
  switch (broker) {
    case Meter::BrokerState::up:
      return "reached";
    case Meter::BrokerState::down:
      return "no broker can be reached; the log says why";
    case Meter::BrokerState::refuses:
      return "refuses bellhop's login; the log says why";
    case Meter::BrokerState::unknown:
      break;
  }
  return "not reached yet, bellhop is trying";
}

}  // namespace

std::vector<ReadyCheck> ready_checks(const AdminSources& sources) {
  std::vector<ReadyCheck> checks;
  const Meter::BrokerState broker = sources.meter->broker();
  checks.push_back({"broker", text_of(broker), broker == Meter::BrokerState::up});
  const auto names = sources.meter->names();
  const std::vector<std::string> waits = what_is_waited_for();
  for (const config::Store& store : sources.config()->stores) {
    const auto number = names->stores.number(store.name);
    const std::string name = "store '" + store.name + "'";
    const bool is_failing = number && sources.meter->store(*number).totals().is_failing;
    const bool is_waited_for = std::find(waits.begin(), waits.end(), name) != waits.end();
    checks.push_back({name,
                      is_failing      ? "its last three operations failed; the log says why"
                      : is_waited_for ? "not available since the start; the log says why"
                                      : "works",
                      !is_failing && !is_waited_for});
  }
  const bool draining = sources.is_draining();
  checks.push_back({"draining", draining ? "bellhop is shutting down" : "no", !draining});
  return checks;
}

}  // namespace bellhop
