#include "daemon/ops/meter.h"

#include <algorithm>

namespace bellhop {

Meter::Meter(const config::Config& config) : names_(config), ended_(names_) {
  for (size_t i = 0; i < names_.stores.size(); ++i) stores_.emplace_back();
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

bool Meter::is_broker_up() const {
  return broker_seen_up_ || has_session_at_broker();
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
