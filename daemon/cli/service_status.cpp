#include "daemon/cli/service_status.h"

#include <algorithm>

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

std::string broker_text(BrokerSeen seen) {
  switch (seen) {
    case BrokerSeen::reached:
      return "; broker reached";
    case BrokerSeen::away:
      return "; waits for the broker";
    case BrokerSeen::refuses:
      return "; the broker refuses bellhop's login";
    case BrokerSeen::unknown:
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

Control::Saw BrokerNews::saw() const {
  return [seen = seen_, meter = meter_](BrokerSeen found) {
    *seen = found;
    if (found == BrokerSeen::refuses) meter->login_refused();
    if (found == BrokerSeen::reached) meter->let_in();
  };
}

std::function<void(bool is_up)> BrokerNews::looked() const {
  return [seen = seen_, meter = meter_](bool is_up) {
    meter->saw_broker(is_up);
    if (!is_up || *seen != BrokerSeen::refuses) *seen = is_up ? BrokerSeen::reached : BrokerSeen::away;
  };
}

BrokerSeen BrokerNews::now() {
  const uint64_t reached = meter_->connects(), failed = meter_->failed_connects();
  if (failed != failed_) seen_->store(BrokerSeen::away);
  const bool is_reached = reached != reached_ && *seen_ != BrokerSeen::refuses;
  if (is_reached || meter_->has_session_at_broker()) seen_->store(BrokerSeen::reached);
  reached_ = reached;
  failed_ = failed;
  return seen_->load();
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
