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
    : meter_(meter), id_(id), door_(door), peer_(std::move(peer)) {
  use(meter.names());
  meter_.begins(*this);
}

SessionMeter::~SessionMeter() {
  meter_.ends(*this);
}

void SessionMeter::use(std::shared_ptr<const MetricNames> names) {
  const std::lock_guard<std::mutex> lock(mutex_);
  names_ = std::move(names);
  routes_.resize(names_->routes.size());
  hops_.resize(names_->steps.size());
  slips_finished_.resize(names_->pipelines.size());
}

RouteCounters& SessionMeter::make_route(size_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  routes_[number] = std::make_unique<RouteCounters>();
  return *routes_[number];
}

void SessionMeter::hopped(const std::string& pipeline, const std::string& step, HopOutcome outcome) {
  hops_[names_->step(pipeline, step)][static_cast<size_t>(outcome)].add();
  if (outcome == HopOutcome::finished) slips_finished_[names_->pipeline(pipeline)].add();
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
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i] != nullptr) routes_[i]->add_to(sum.routes[i]);
  }
  for (size_t i = 0; i < hops_.size(); ++i) add_all(sum.hops[i], hops_[i]);
  for (size_t i = 0; i < slips_finished_.size(); ++i) sum.slips_finished[i] += slips_finished_[i].value();
  add_all(sum.deliveries, deliveries_);
  add_all(sum.parked, parked_);
}

}  // namespace bellhop
