#include "daemon/cli/service_status.h"

#include <algorithm>
#include <utility>

#include "daemon/ops/waits.h"

namespace bellhop {

namespace {

std::string sessions_text(size_t sessions) {
  if (sessions == 0) return "no session";
  return std::to_string(sessions) + (sessions == 1 ? " session" : " sessions");
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

std::string broker_text(Meter::BrokerState seen) {
  switch (seen) {
    case Meter::BrokerState::up:
      return "; broker reached";
    case Meter::BrokerState::down:
      return "; waits for the broker";
    case Meter::BrokerState::refuses:
      return "; the broker refuses bellhop's login";
    case Meter::BrokerState::unknown:
      break;
  }
  return "";
}

}  // namespace

std::string status_of(const ServiceFacts& facts) {
  if (facts.drain_left_ms) {
    if (facts.sessions == 0) return "draining: all sessions have ended, the stores are being closed";
    return "draining: " + sessions_text(facts.sessions) + " left, " +
           std::to_string((*facts.drain_left_ms + 999) / 1000) + " s at most";
  }
  std::string out = "listening on " + joined(facts.addresses) + "; " + sessions_text(facts.sessions) +
                    broker_text(facts.broker);
  if (!facts.waits.empty()) out += "; waits for " + joined(facts.waits);
  if (facts.reload_failed)
    out += "; the configuration has a mistake, number " + std::to_string(*facts.reload_failed) +
           " stays in use: the log says which";
  return out;
}

Control::Saw tells(std::shared_ptr<Meter> meter) {
  return [meter = std::move(meter)](BrokerSeen found) {
    if (found == BrokerSeen::away) {
      meter->saw_broker(false);
    } else {
      meter->answered_login(found == BrokerSeen::reached);
    }
  };
}

std::vector<std::string> stores_in_trouble(const config::Config& config, const Meter& meter) {
  std::vector<std::string> out = what_is_waited_for();
  const auto names = meter.names();
  for (const config::Store& store : config.stores) {
    const auto number = names->stores.number(store.name);
    const std::string what = "store '" + store.name + "'";
    if (number && meter.store(*number).totals().is_failing &&
        std::find(out.begin(), out.end(), what) == out.end())
      out.push_back(what);
  }
  return out;
}

}  // namespace bellhop
