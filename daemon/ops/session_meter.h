// SessionMeter: what one session counts and shows of itself. The session's thread writes, others read. It is
// known to the process's Meter while it lives; with its end its counters become part of the totals.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ops/counter.h"
#include "daemon/ops/metric_names.h"

namespace bellhop {

struct RouteTotals {
  std::array<uint64_t, publish_outcome_names.size()> outcomes{};
  uint64_t bytes = 0;  // of bodies, as the clients published them
  Durations until_confirmed;
};

// Sums over sessions; plain values.
struct Totals {
  explicit Totals(const MetricNames& names) { grow(names); }
  void grow(const MetricNames& names) {
    routes.resize(names.routes.size());
    hops.resize(names.steps.size());
    slips_finished.resize(names.pipelines.size());
  }

  std::vector<RouteTotals> routes;  // as MetricNames::routes, and so on
  std::vector<std::array<uint64_t, hop_outcome_names.size()>> hops;
  std::vector<uint64_t> slips_finished;
  std::array<uint64_t, delivery_path_names.size()> deliveries{};
  std::array<uint64_t, park_reason_names.size()> parked{};
  std::array<uint64_t, door_names.size()> sessions{};  // now
  std::array<std::array<uint64_t, session_end_names.size()>, door_names.size()> sessions_ended{};
  uint64_t held = 0, blocked_sessions = 0, sessions_at_broker = 0;  // now
};

// What a session shows of itself.
struct SessionLine {
  uint64_t id = 0;
  std::string client, peer;
  Door door = Door::unix_socket;
  uint64_t channels = 0, unconfirmed = 0, held = 0;
  uint64_t age_s = 0;
  bool at_broker = false, blocked = false;
};

class RouteCounters {
 public:
  void published(uint64_t body_bytes) { bytes_.add(body_bytes); }
  void settled(PublishOutcome outcome, uint64_t count = 1) {
    outcomes_[static_cast<size_t>(outcome)].add(count);
  }
  void answered(uint64_t ms, uint64_t count) { until_confirmed_.add(ms, count); }
  void add_to(RouteTotals& sum) const;

 private:
  std::array<Counter, publish_outcome_names.size()> outcomes_;
  Counter bytes_;
  DurationCounters until_confirmed_;
};

// What is counted of a publish when its outcome is known.
struct PublishMark {
  RouteCounters* route = nullptr;  // null: it is not counted
  uint32_t began_ms = 0;           // the low bits of the session's clock

  bool operator==(const PublishMark&) const = default;
};

class Meter;

class SessionMeter {
 public:
  // Any thread. `meter` outlives it. It counts under the meter's names until it is told of newer ones.
  SessionMeter(Meter& meter, uint64_t id, Door door, std::string peer);
  ~SessionMeter();
  SessionMeter(const SessionMeter&) = delete;
  SessionMeter& operator=(const SessionMeter&) = delete;

  // --- the session's thread ---
  // `names` has all that the former ones had. Marks stay good.
  void use(std::shared_ptr<const MetricNames> names);
  // `route_number` is one of the names'.
  PublishMark begin_publish(size_t route_number, uint64_t body_bytes) {
    RouteCounters* const known = routes_[route_number].get();
    RouteCounters& counters = known != nullptr ? *known : make_route(route_number);
    counters.published(body_bytes);
    return {&counters, now_ms};
  }
  // The publish has no confirm to wait for, or will have none.
  void settle(const PublishMark& mark, PublishOutcome outcome) {
    if (mark.route != nullptr) mark.route->settled(outcome);
  }
  // The confirm (or nack) of `count` publishes with this mark goes to the client.
  void answer(const PublishMark& mark, PublishOutcome outcome, uint64_t count) {
    if (mark.route == nullptr) return;
    mark.route->settled(outcome, count);
    mark.route->answered(now_ms - mark.began_ms, count);
  }
  void delivered(DeliveryPath path) { deliveries_[static_cast<size_t>(path)].add(); }
  void parked(ParkReason reason) { parked_[static_cast<size_t>(reason)].add(); }
  void hopped(const std::string& pipeline, const std::string& step, HopOutcome outcome);
  // The client's own name for its connection.
  void set_client(std::string_view name);
  void ends(SessionEnd why) { end_ = why; }
  // As client(), without its mutex: nobody else writes it.
  const std::string& own_client() const { return client_; }

  uint32_t now_ms = 0;  // of the turn, the low bits of the loop's clock

  Counter channels, unconfirmed, held;                 // now
  std::atomic<bool> at_broker{false}, blocked{false};  // now

  // --- any thread ---
  SessionLine line() const;
  std::string client() const;
  void add_to(Totals& sum) const;

 private:
  friend class Meter;
  RouteCounters& make_route(size_t number);

  Meter& meter_;
  const uint64_t id_;
  const Door door_;
  const std::string peer_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  SessionEnd end_ = SessionEnd::closed;  // read after the session's thread has ended

  // The session's thread alone changes them, under the mutex; others read them under it. A route's counters
  // are made at its first use: a session uses few of many routes.
  std::shared_ptr<const MetricNames> names_;
  std::vector<std::unique_ptr<RouteCounters>> routes_;
  std::deque<std::array<Counter, hop_outcome_names.size()>> hops_;
  std::deque<Counter> slips_finished_;

  std::array<Counter, delivery_path_names.size()> deliveries_;
  std::array<Counter, park_reason_names.size()> parked_;

  mutable std::mutex mutex_;
  std::string client_;  // under the mutex
};

}  // namespace bellhop
