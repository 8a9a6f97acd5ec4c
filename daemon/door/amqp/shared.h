// Shared: what all sessions of the process share. Outlives every session.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/broker/broker_nodes.h"
#include "daemon/door/amqp/spill_file.h"
#include "daemon/ops/budget.h"
#include "daemon/ops/meter.h"
#include "daemon/ops/quota.h"
#include "daemon/ops/taps.h"
#include "daemon/snapshot/snapshot.h"

namespace bellhop {

struct Shared {
  CurrentSnapshot current;
  std::unique_ptr<Budget> budget;
  std::shared_ptr<Meter> meter;
  Taps taps;
  SpillSpace spill;
  BrokerNodes nodes;
  std::atomic<uint64_t> held_for_clients{0};  // bytes in all sessions' delivery queues
  Quota parks{uint64_t{64} << 20};       // what all sessions keep in memory of messages that are being parked
  Quota remembered{uint64_t{32} << 20};  // what all sessions remember of publishes that may come back
  std::unique_ptr<Quota>
      hop_bodies;  // limits.inflight_bytes: of hops that are collected, until they are whole
};

}  // namespace bellhop
