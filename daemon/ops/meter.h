// Meter: all that the process counts. Each session counts for itself (ops/session_meter.h); whoever reads
// adds up those that live and what the ended ones left. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
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

  // What is new in a configuration that is about to be used gets numbers.
  void add_names(const config::Config& config);
  std::shared_ptr<const MetricNames> names() const;
  // `number` is one of names()->stores. It stays where it is.
  StoreMeter& store(size_t number);
  const StoreMeter& store(size_t number) const;

  // A session reached a broker, or gave up.
  void connected_to_broker(bool reached) {
    (reached ? connects_ : failed_connects_).fetch_add(1);
    saw_broker(reached);
  }
  uint64_t connects() const { return connects_.load(); }
  uint64_t failed_connects() const { return failed_connects_.load(); }
  // What was last known of it. It counts while no session is there. A look that only reaches the broker says
  // nothing of a login that it refuses.
  void saw_broker(bool is_up);
  // It refuses the configuration's login, or lets bellhop or a client in.
  void answered_login(bool is_let_in);
  // It is another one now.
  void forget_broker();
  bool has_session_at_broker() const;
  // unknown: bellhop has not looked yet. The first who asks makes it look, and waits here for the answer, but
  // no longer than first_look_wait.
  enum class BrokerState : uint8_t { unknown, up, down, refuses };
  static constexpr std::chrono::milliseconds first_look_wait{500};
  BrokerState broker() const;
  // The same without waiting.
  BrokerState seen() const;

  Totals totals() const;
  std::vector<SessionLine> sessions() const;  // the oldest first

 private:
  friend class SessionMeter;
  void begins(SessionMeter& session);
  void ends(SessionMeter& session);

  std::atomic<uint64_t> connects_{0}, failed_connects_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable saw_;
  // All under the mutex.
  BrokerState seen_ = BrokerState::unknown;  // by looks
  bool is_refused_ = false;                  // the login, until somebody is let in
  std::shared_ptr<const MetricNames> names_;
  std::deque<StoreMeter> stores_;
  std::unordered_set<SessionMeter*> live_;
  Totals ended_;
};

}  // namespace bellhop
