// A session's time: one timer, for whatever is due next: heartbeats, deadlines, deliveries to be fetched
// again.
#include <algorithm>

#include "daemon/door/amqp/session/session.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

constexpr uint64_t tick_ms_max = 5000;

}  // namespace

void Session::schedule_tick(uint64_t after_ms) {
  if (finished_) return;
  uint64_t now = now_ms();
  if (next_tick_ms_ > now && next_tick_ms_ <= now + after_ms) return;
  next_tick_ms_ = now + after_ms;
  uv_timer_start(
      &timer_, [](uv_timer_t* timer) { static_cast<Session*>(timer->data)->tick(); }, after_ms, 0);
}

void Session::set_deadline(uint64_t& deadline_ms, uint64_t after_ms) {
  deadline_ms = now_ms() + after_ms;
  schedule_tick(after_ms);
}

void Session::tick() {
  if (finished_) return;
  uint64_t now = now_ms();
  uint64_t next = tick_ms_max;
  next_tick_ms_ = 0;
  if (stage_ == Stage::running) {
    beat(now);
    next = std::min({next, client_heartbeat_.next_ms(), broker_heartbeat_.next_ms()});
    if (auto wait_ms = relay_->tick()) next = std::min(next, *wait_ms);
    if (state_.draining) next = std::min<uint64_t>(next, 100);
  }
  for (uint64_t deadline : {client_deadline_ms_, broker_deadline_ms_, linger_deadline_ms_,
                            farewell_deadline_ms_, rest_deadline_ms_}) {
    if (deadline > now) next = std::min(next, deadline - now);
  }
  schedule_tick(std::max<uint64_t>(next, 1));
  turn();
}

void Session::beat(uint64_t now_ms) {
  auto missed = [](const Heartbeat& heartbeat) {
    return "missed heartbeats, timeout: " + std::to_string(heartbeat.interval_s()) + "s";
  };
  const bool is_quiet = relay_ == nullptr || relay_->is_quiet();
  if (client_leg_ == Leg::open && !state_.client_gone &&
      !client_heartbeat_.beat(*client_, is_quiet, now_ms)) {
    end_reason_ = "client: " + missed(client_heartbeat_);
    tell_trouble("session ended", subject_of_reason(end_reason_), "session ended",
                 about({{"reason", end_reason_}}));
    client_vanished();
  }
  if (broker_leg_ == Leg::open && !broker_heartbeat_.beat(*broker_, broker_->outbox().empty(), now_ms)) {
    broker_ended(missed(broker_heartbeat_));
  }
}

}  // namespace bellhop
