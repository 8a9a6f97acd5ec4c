// BrokerWatch: whether a broker can be reached, for times in which no session is at one: bellhop asks itself,
// each 10 s, as a session would: it connects and waits for connection.start. Then it ends the connection.
//
// One thread, the loop's.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>

#include "daemon/broker/connector.h"

namespace bellhop {

class BrokerWatch {
 public:
  static constexpr uint64_t pause_ms = 10000;

  // Begins at once. `is_needed` says whether to ask this time; `found` is told the answer. What is referred
  // to outlives the watch.
  BrokerWatch(uv_loop_t* loop, std::shared_ptr<const config::Config> config,
              std::shared_ptr<const TlsContext> tls, BrokerNodes& nodes, std::function<bool()> is_needed,
              std::function<void(bool is_up)> found);
  // The loop has to run once more to let libuv go of the handle.
  ~BrokerWatch();
  BrokerWatch(const BrokerWatch&) = delete;
  BrokerWatch& operator=(const BrokerWatch&) = delete;

 private:
  void look();

  uv_loop_t* const loop_;
  const std::shared_ptr<const config::Config> config_;
  const std::shared_ptr<const TlsContext> tls_;
  BrokerNodes& nodes_;
  const std::function<bool()> is_needed_;
  const std::function<void(bool)> found_;
  std::unique_ptr<Connector> connector_;  // an attempt under way
  uv_timer_t* const timer_;               // freed by its close callback
};

}  // namespace bellhop
