#include "daemon/ops/meter.h"

#include <algorithm>

namespace bellhop {

Meter::Meter(const config::Config& config) : names_(std::make_shared<const MetricNames>()), ended_(*names_) {
  add_names(config);
}

void Meter::add_names(const config::Config& config) {
  auto more = std::make_shared<MetricNames>(*names());
  more->add(config);
  const std::lock_guard<std::mutex> lock(mutex_);
  while (stores_.size() < more->stores.size()) stores_.emplace_back();
  ended_.grow(*more);
  names_ = std::move(more);
}

std::shared_ptr<const MetricNames> Meter::names() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_;
}

StoreMeter& Meter::store(size_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stores_[number];
}

const StoreMeter& Meter::store(size_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stores_[number];
}

void Meter::begins(SessionMeter& session) {
  const std::lock_guard<std::mutex> lock(mutex_);
  live_.insert(&session);
}

void Meter::ends(SessionMeter& session) {
  const std::lock_guard<std::mutex> lock(mutex_);
  live_.erase(&session);
  session.add_to(ended_);
  ++ended_.sessions_ended[static_cast<size_t>(session.door_)][static_cast<size_t>(session.end_)];
}

bool Meter::has_session_at_broker() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(live_.begin(), live_.end(), [](const SessionMeter* session) {
    return session->at_broker.load(std::memory_order_relaxed);
  });
}

void Meter::saw_broker(bool is_up) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = is_up ? BrokerState::up : BrokerState::down;
  }
  saw_.notify_all();
}

void Meter::answered_login(bool is_let_in) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = BrokerState::up;
    is_refused_ = !is_let_in;
  }
  saw_.notify_all();
}

void Meter::forget_broker() {
  const std::lock_guard<std::mutex> lock(mutex_);
  seen_ = BrokerState::unknown;
  is_refused_ = false;
}

Meter::BrokerState Meter::broker() const {
  if (!has_session_at_broker()) {
    std::unique_lock<std::mutex> lock(mutex_);
    saw_.wait_for(lock, first_look_wait, [this] { return seen_ != BrokerState::unknown; });
  }
  return seen();
}

Meter::BrokerState Meter::seen() const {
  if (has_session_at_broker()) return BrokerState::up;
  const std::lock_guard<std::mutex> lock(mutex_);
  return seen_ == BrokerState::up && is_refused_ ? BrokerState::refuses : seen_;
}

Totals Meter::totals() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Totals sum = ended_;
  for (const SessionMeter* session : live_) {
    session->add_to(sum);
    ++sum.sessions[static_cast<size_t>(session->door_)];
    sum.held += session->held.value();
    if (session->at_broker.load(std::memory_order_relaxed)) ++sum.sessions_at_broker;
    if (session->blocked.load(std::memory_order_relaxed)) ++sum.blocked_sessions;
  }
  return sum;
}

std::vector<SessionLine> Meter::sessions() const {
  std::vector<SessionLine> lines;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const SessionMeter* session : live_) lines.push_back(session->line());
  }
  std::sort(lines.begin(), lines.end(),
            [](const SessionLine& a, const SessionLine& b) { return a.id < b.id; });
  return lines;
}

}  // namespace bellhop
