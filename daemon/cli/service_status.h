// The line about bellhop that `systemctl status` shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/broker/control.h"
#include "daemon/ops/meter.h"

namespace bellhop {

struct ServiceFacts {
  std::vector<std::string> addresses;
  size_t sessions = 0;
  Meter::BrokerState broker = Meter::BrokerState::unknown;
  std::vector<std::string> waits;         // `store 'claims'`
  std::optional<uint64_t> reload_failed;  // the number of the configuration that stays in use
  std::optional<uint64_t> drain_left_ms;  // while it drains
};
std::string status_of(const ServiceFacts& facts);

// Tells the meter what bellhop's own logins find. For any thread, also when the daemon is gone.
Control::Saw tells(std::shared_ptr<Meter> meter);

// Stores that bellhop found missing at its start, or whose last three operations failed.
std::vector<std::string> stores_in_trouble(const config::Config& config, const Meter& meter);

}  // namespace bellhop
