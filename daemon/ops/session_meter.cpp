#include "daemon/ops/session_meter.h"

#include "daemon/ops/meter.h"

namespace bellhop {

namespace {

constexpr size_t client_bytes_max = 128;

template <typename Sums, typename Counters>
void add_all(Sums& sums, const Counters& counters) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += counters[i].value();
}

}  // namespace

void RouteCounters::add_to(RouteTotals& sum) const {
  add_all(sum.outcomes, outcomes_);
  sum.bytes += bytes_.value();
  until_confirmed_.add_to(sum.until_confirmed);
}

SessionMeter::SessionMeter(Meter& meter, uint64_t id, Door door, std::string peer)
    : meter_(meter),
      id_(id),
      door_(door),
      peer_(std::move(peer)),
      routes_(meter.names().routes.size()),
      hops_(meter.names().steps.size()),
      slips_finished_(meter.names().pipelines.size()) {
  meter_.begins(*this);
}

SessionMeter::~SessionMeter() {
  meter_.ends(*this);
  for (const auto& route : routes_) delete route.load(std::memory_order_relaxed);
}

RouteCounters& SessionMeter::make_route(size_t number) {
  auto* const made = new RouteCounters;
  routes_[number].store(made, std::memory_order_release);  // a reader sees it made
  return *made;
}

void SessionMeter::hopped(std::string_view pipeline, std::string_view step, HopOutcome outcome) {
  const MetricNames& names = meter_.names();
  hops_[names.step(pipeline, step)][static_cast<size_t>(outcome)].add();
  if (outcome == HopOutcome::finished) slips_finished_[names.pipeline(pipeline)].add();
}

void SessionMeter::set_client(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  client_ = name.substr(0, client_bytes_max);
}

std::string SessionMeter::client() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return client_;
}

SessionLine SessionMeter::line() const {
  SessionLine out;
  out.id = id_;
  out.peer = peer_;
  out.door = door_;
  out.channels = channels.value();
  out.unconfirmed = unconfirmed.value();
  out.held = held.value();
  out.age_s = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began_).count());
  out.at_broker = at_broker.load(std::memory_order_relaxed);
  out.blocked = blocked.load(std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  out.client = client_;
  return out;
}

void SessionMeter::add_to(Totals& sum) const {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const RouteCounters* const route = routes_[i].load(std::memory_order_acquire);
    if (route != nullptr) route->add_to(sum.routes[i]);
  }
  for (size_t i = 0; i < hops_.size(); ++i) add_all(sum.hops[i], hops_[i]);
  add_all(sum.slips_finished, slips_finished_);
  add_all(sum.deliveries, deliveries_);
  add_all(sum.parked, parked_);
}

}  // namespace bellhop
