#include "daemon/broker/broker_watch.h"

#include <utility>

namespace bellhop {

BrokerWatch::BrokerWatch(uv_loop_t* loop, std::shared_ptr<const config::Config> config,
                         std::shared_ptr<const TlsContext> tls, BrokerNodes& nodes,
                         std::function<bool()> is_needed, std::function<void(bool is_up)> found)
    : loop_(loop),
      config_(std::move(config)),
      tls_(std::move(tls)),
      nodes_(nodes),
      is_needed_(std::move(is_needed)),
      found_(std::move(found)),
      timer_(new uv_timer_t) {
  uv_timer_init(loop, timer_);
  timer_->data = this;
  uv_timer_start(
      timer_, [](uv_timer_t* timer) { static_cast<BrokerWatch*>(timer->data)->look(); }, 0, pause_ms);
}

BrokerWatch::~BrokerWatch() {
  connector_.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(timer_),
           [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
}

void BrokerWatch::look() {
  if (connector_ != nullptr || !is_needed_()) return;
  connector_ =
      std::make_unique<Connector>(loop_, config_->broker, tls_, nodes_, [this](Result<Connected> result) {
        // The connection ends here.
        found_(static_cast<bool>(result));
        connector_.reset();
      });
}

}  // namespace bellhop
