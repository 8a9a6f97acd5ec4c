#include "daemon/admin/status.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "daemon/admin/process_numbers.h"
#include "daemon/ops/log.h"

namespace bellhop {

namespace {

using Json = nlohmann::ordered_json;

std::string utc(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

template <typename Values, typename Names>
Json by_name(const Values& values, const Names& names) {
  Json out = Json::object();
  for (size_t i = 0; i < names.size(); ++i) out[names[i]] = values[i];
  return out;
}

// Numbers as a person wants to see them: what no name stands for (0) comes last.
std::vector<size_t> shown_order(size_t count) {
  std::vector<size_t> order;
  for (size_t i = 1; i < count; ++i) order.push_back(i);
  order.push_back(0);
  return order;
}

Json routes(const MetricNames& names, const Totals& totals) {
  Json out = Json::array();
  for (const size_t i : shown_order(names.routes.size())) {
    const RouteTotals& route = totals.routes[i];
    out.push_back({{"name", names.routes[i]},
                   {"publishes", by_name(route.outcomes, publish_outcome_names)},
                   {"bytes", route.bytes},
                   {"confirms", route.until_confirmed.count()},
                   {"confirm_ms", route.until_confirmed.sum_ms}});
  }
  return out;
}

Json stores(const AdminSources& sources) {
  Json out = Json::array();
  const auto names = sources.meter->names();
  for (const config::Store& configured : sources.config()->stores) {
    const auto number = names->stores.number(configured.name);
    if (!number) continue;
    const StoreTotals store = sources.meter->store(*number).totals();
    out.push_back({{"name", configured.name},
                   {"works", !store.is_failing},
                   {"offloads", {{"ok", store.uploads}, {"failed", store.failed_uploads}}},
                   {"offload_bytes", store.uploaded_bytes},
                   {"restores", by_name(store.fetches, store_result_names)}});
  }
  return out;
}

Json steps(const MetricNames& names, const Totals& totals) {
  Json out = Json::array();
  for (const size_t i : shown_order(names.steps.size()))
    out.push_back({{"pipeline", names.steps[i].pipeline},
                   {"step", names.steps[i].step},
                   {"hops", by_name(totals.hops[i], hop_outcome_names)}});
  return out;
}

Json sessions(const Meter& meter) {
  Json out = Json::array();
  for (const SessionLine& each : meter.sessions())
    out.push_back({{"id", each.id},
                   {"client", each.client},
                   {"peer", each.peer},
                   {"door", door_names[static_cast<size_t>(each.door)]},
                   {"at_broker", each.at_broker},
                   {"blocked", each.blocked},
                   {"channels", each.channels},
                   {"unconfirmed", each.unconfirmed},
                   {"held", each.held},
                   {"age_seconds", each.age_s}});
  return out;
}

Json checks(const AdminSources& sources, bool& all_ok) {
  Json out = Json::array();
  for (const ReadyCheck& check : ready_checks(sources)) {
    all_ok = all_ok && check.ok;
    out.push_back({{"name", check.name}, {"ok", check.ok}, {"text", check.text}});
  }
  return out;
}

}  // namespace

std::string status_json(const AdminSources& sources) {
  const Meter& meter = *sources.meter;
  const auto all_names = meter.names();  // before the totals, which may then know more
  const MetricNames& names = *all_names;
  const Totals totals = meter.totals();
  const ReloadView reload = sources.reload->view();
  bool ready = true;
  Json out;
  out["service"] = sources.config()->service;
  out["version"] = sources.version;
  out["pid"] = getpid();
  out["now"] = utc(std::chrono::system_clock::now());
  out["started_at"] = utc(sources.started_at);
  out["log_level"] = log_level();
  out["draining"] = sources.is_draining();
  out["checks"] = checks(sources, ready);
  out["ready"] = ready;
  out["config"] = {{"generation", reload.generation},
                   {"looks", reload.looks},
                   {"last_reload_successful", reload.last_was_successful},
                   {"problems", reload.problems},
                   {"read_at", utc(reload.last_success)}};
  const Meter::BrokerState broker = meter.broker();
  out["broker"] = {{"up", broker == Meter::BrokerState::up},
                   {"state", broker == Meter::BrokerState::up        ? "up"
                             : broker == Meter::BrokerState::down    ? "down"
                             : broker == Meter::BrokerState::refuses ? "refuses bellhop's login"
                                                                     : "unknown"},
                   {"sessions", totals.sessions_at_broker},
                   {"blocked", totals.blocked_sessions},
                   {"connects", {{"ok", meter.connects()}, {"failed", meter.failed_connects()}}}};
  out["routes"] = routes(names, totals);
  out["stores"] = stores(sources);
  out["steps"] = steps(names, totals);
  out["slips_finished"] = by_name(totals.slips_finished, names.pipelines);
  out["deliveries"] = by_name(totals.deliveries, delivery_path_names);
  out["held"] = totals.held;
  out["parked"] = by_name(totals.parked, park_reason_names);
  out["sessions"] = sessions(meter);
  Json ended = Json::object();
  for (size_t i = 0; i < session_end_names.size(); ++i)
    ended[session_end_names[i]] = totals.sessions_ended[0][i] + totals.sessions_ended[1][i];
  out["sessions_closed"] = ended;
  out["memory"] = {{"resident_bytes", process_numbers().resident_bytes},
                   {"inflight_bytes", sources.inflight_bytes()},
                   {"scratch_bytes", sources.scratch_bytes()}};
  out["log_lines_dropped"] = log_lines_dropped();
  // What a client calls itself may be anything.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bellhop
