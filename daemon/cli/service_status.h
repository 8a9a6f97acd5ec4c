// The line about bellhop that `systemctl status` shows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/broker/control.h"
#include "daemon/ops/meter.h"

namespace bellhop {

struct ServiceFacts {
  std::vector<std::string> addresses;
  size_t sessions = 0;
  BrokerSeen broker = BrokerSeen::unknown;
  std::vector<std::string> waits;         // `store 'claims'`
  std::optional<uint64_t> reload_failed;  // the number of the configuration that stays in use
  std::optional<uint64_t> drain_left_ms;  // while it drains
};
std::string status_of(const ServiceFacts& facts);

// What is known of the broker without asking it: bellhop's own looks, and how sessions fared. The main
// thread.
class BrokerNews {
 public:
  explicit BrokerNews(std::shared_ptr<Meter> meter) : meter_(std::move(meter)) {}

  // For bellhop's own logins, and for its looks, which only reach the broker. Any thread may call what they
  // give, also when this is gone.
  Control::Saw saw() const;
  std::function<void(bool is_up)> looked() const;
  // Never waits.
  BrokerSeen now();
  // It is another one.
  void forget() { seen_->store(BrokerSeen::unknown); }

 private:
  const std::shared_ptr<Meter> meter_;
  const std::shared_ptr<std::atomic<BrokerSeen>> seen_ =
      std::make_shared<std::atomic<BrokerSeen>>(BrokerSeen::unknown);
  uint64_t reached_ = 0, failed_ = 0;  // how often sessions had, at the last look
};

// Stores that bellhop found missing at its start, or whose last three operations failed.
std::vector<std::string> stores_in_trouble(const config::Config& config, const Meter& meter);

}  // namespace bellhop
