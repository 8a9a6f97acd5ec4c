#include "config/hold_warnings.h"

#include "config/units.h"

namespace bellhop::config {

namespace {

constexpr uint32_t minute_ms = 60000;
constexpr uint32_t consumer_timeout_ms = 30 * minute_ms;  // RabbitMQ's default
constexpr uint32_t margin_ms = 5 * minute_ms;             // until it is asked for, handed over and worked on

}  // namespace

std::vector<std::string> hold_warnings(const Config& config) {
  if (config.hold_max_ms <= consumer_timeout_ms - margin_ms) return {};
  return {"consume.hold_max is " + show_time(config.hold_max_ms) +
          ", and RabbitMQ closes a channel whose delivery is not acknowledged within its consumer_timeout (" +
          show_time(consumer_timeout_ms) + " by default): set hold_max to at most " +
          show_time(consumer_timeout_ms - margin_ms) + ", or raise consumer_timeout at the broker"};
}

}  // namespace bellhop::config
