// Snapshot: one configuration, and what was made of it. Immutable, so that all threads read it. A message
// follows one snapshot from its first decision on; what outlasts a turn (a publish job) keeps it.
// CurrentSnapshot: the one that counts for whatever begins now.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "config/routing_table.h"
#include "daemon/claims/stores.h"
#include "daemon/ops/metric_names.h"
#include "daemon/wire/tls_context.h"

namespace bellhop {

struct Snapshot {
  uint64_t generation = 1;  // each has its own, from 1
  std::shared_ptr<const config::Config> config;
  std::unique_ptr<const config::RoutingTable> routing;
  std::unique_ptr<const Stores> stores;
  std::shared_ptr<const TlsContext> tls;  // null: no URL is an amqps:// one
  std::shared_ptr<const MetricNames> names;
  std::string origin;  // SERVICE@HOST
};

// Any thread.
class CurrentSnapshot {
 public:
  std::shared_ptr<const Snapshot> get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return snapshot_;
  }
  // Cheap: for a look in each turn.
  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }
  // The argument, which is the former one then, ends outside of the lock.
  void set(std::shared_ptr<const Snapshot> snapshot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    snapshot_.swap(snapshot);
    generation_.store(snapshot_->generation, std::memory_order_relaxed);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::atomic<uint64_t> generation_{0};
};

}  // namespace bellhop
