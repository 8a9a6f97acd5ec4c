#include "daemon/door/sessions.h"

#include <algorithm>

#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {
constexpr size_t refusals_at_once_max = 64;  // beyond, a socket is just closed
constexpr size_t leaving_max = 16;           // with a small limit
constexpr size_t shrinks_by_min = 8;
}  // namespace

void Sessions::accept(Accepted accepted) {
  const auto snapshot = shared_.current.get();
  const config::Limits& limits = snapshot->config->limits;
  std::string refusal, limit;
  if (is_full(served_, limits.sessions, false)) {
    limit = "limits.sessions";
    refusal = "NOT_ALLOWED - bellhop's limits.sessions (" + std::to_string(limits.sessions) + ") is reached";
  } else if (accepted.tcp != nullptr && is_full(served_tcp_, limits.tcp_sessions, true)) {
    limit = "limits.tcp_sessions";
    refusal = "NOT_ALLOWED - bellhop's limits.tcp_sessions (" + std::to_string(limits.tcp_sessions) +
              ") is reached";
  }
  if (!refusal.empty()) {
    tell_trouble(trouble_connection_refused, limit, "connection refused",
                 {{"peer", accepted.peer}, {"limit", limit}, {"reason", refusal}});
    if (sessions_.size() - served_ >= refusals_at_once_max) return;
  }
  const uint64_t id = ++ids_;
  const bool served = refusal.empty();
  const bool tcp = accepted.tcp != nullptr;
  const std::string peer = accepted.peer;
  auto session = std::make_unique<Session>(shared_, std::move(accepted), id, std::move(refusal),
                                           [this, mailbox = mailbox_](uint64_t ended_id) {
                                             mailbox->post([this, ended_id] { ended(ended_id); });
                                           });
  if (auto started = session->start(); !started) {
    tell_trouble("connection dropped", subject_of_reason(started.error()), "connection dropped",
                 {{"session", id}, {"peer", peer}, {"reason", started.error()}}, spdlog::level::err);
    return;
  }
  if (served) served_++;
  if (served && tcp) served_tcp_++;
  is_served_[id] = served;
  sessions_[id] = std::move(session);
  most_ = std::max(most_, sessions_.size());
}

// Sessions whose client has been told goodbye do not count, up to as many again: a client that reconnects
// must not meet the session that it has just closed.
bool Sessions::is_full(size_t served, size_t limit, bool tcp) const {
  if (served < limit) return false;
  const auto leaving = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return is_served_.at(entry.first) && entry.second->is_leaving() && (!tcp || entry.second->is_tcp());
  });
  return served - static_cast<size_t>(leaving) >= limit || served >= limit + std::max(limit, leaving_max);
}

void Sessions::ended(uint64_t id) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  if (is_served_[id]) {
    served_--;
    if (found->second->is_tcp()) served_tcp_--;
  }
  is_served_.erase(id);
  sessions_.erase(found);
  if (has_trouble()) tell_free_places();
  if (sessions_.empty() && drained_) drained_();
}

bool Sessions::has_shrunk() {
  const size_t now = sessions_.size();
  if (most_ < now + shrinks_by_min || now > most_ / 2) return false;
  most_ = now;
  return true;
}

void Sessions::tell_free_places() const {
  const auto snapshot = shared_.current.get();
  const config::Limits& limits = snapshot->config->limits;
  if (served_ >= limits.sessions) return;
  trouble_over(trouble_connection_refused, "limits.sessions", "limits.sessions is not reached any more", {});
  if (served_tcp_ < limits.tcp_sessions)
    trouble_over(trouble_connection_refused, "limits.tcp_sessions",
                 "limits.tcp_sessions is not reached any more", {});
}

void Sessions::drain(std::function<void()> done) {
  if (sessions_.empty()) {
    done();
    return;
  }
  drained_ = std::move(done);
  for (auto& [id, session] : sessions_) session->drain();
}

void Sessions::look_at_configuration() {
  for (auto& [id, session] : sessions_) session->look_at_configuration();
}

void Sessions::stop_all(const std::string& why, uint64_t within_ms) {
  for (auto& [id, session] : sessions_) session->stop(why, within_ms);
}

std::vector<LogFields> Sessions::what_is_unsettled() const {
  std::vector<LogFields> lines;
  for (const auto& [id, session] : sessions_) lines.push_back(session->what_is_unsettled());
  return lines;
}

}  // namespace bellhop
