// Meter: all that the process counts. Each session counts for itself (ops/session_meter.h); whoever reads
// adds up those that live and what the ended ones left. Any thread.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/ops/metric_names.h"
#include "daemon/ops/session_meter.h"
#include "daemon/ops/store_meter.h"

namespace bellhop {

class Meter {
 public:
  explicit Meter(const config::Config& config);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  const MetricNames& names() const { return names_; }
  // In the order of the configuration, as names().stores.
  StoreMeter& store(size_t number) { return stores_[number]; }
  const StoreMeter& store(size_t number) const { return stores_[number]; }

  // A session reached a broker, or gave up.
  void connected_to_broker(bool reached) {
    (reached ? connects_ : failed_connects_).fetch_add(1);
    saw_broker(reached);
  }
  uint64_t connects() const { return connects_.load(); }
  uint64_t failed_connects() const { return failed_connects_.load(); }
  // What was last known of it. It counts while no session is there.
  void saw_broker(bool is_up) { broker_seen_up_ = is_up; }
  bool has_session_at_broker() const;
  bool is_broker_up() const;

  Totals totals() const;
  std::vector<SessionLine> sessions() const;  // the oldest first

 private:
  friend class SessionMeter;
  void begins(SessionMeter& session);
  void ends(SessionMeter& session);

  const MetricNames names_;
  std::deque<StoreMeter> stores_;
  std::atomic<uint64_t> connects_{0}, failed_connects_{0};
  std::atomic<bool> broker_seen_up_{false};
  mutable std::mutex mutex_;
  std::unordered_set<SessionMeter*> live_;  // under the mutex
  Totals ended_;                            // under the mutex
};

}  // namespace bellhop
