// The sections of single values: service, consume, limits, log.
#include <unistd.h>

#include "config/load_sections.h"
#include "config/names.h"
#include "config/units.h"

namespace bellhop::config {

namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

// A client waits for the broker before its handshake begins, so the handshake's limit must leave time for
// that.
void check_timeouts(Section& root, const Config& config) {
  const uint32_t connect_ms = config.broker.connect_timeout_ms;
  const uint32_t handshake_ms = config.limits.handshake_timeout_ms;
  if (connect_ms < handshake_ms) return;
  const auto given = [&root](const char* section, const char* key) -> std::optional<Value> {
    const auto value = root.find(section);
    return value && value->is_mapping() ? Section(*value).find(key) : std::nullopt;
  };
  if (const auto connect = given("broker", "connect_timeout")) {
    connect->error("is " + show_time(connect_ms) + ", allowed: less than limits.handshake_timeout (" +
                   show_time(handshake_ms) + ")");
  } else if (const auto handshake = given("limits", "handshake_timeout")) {
    handshake->error("is " + show_time(handshake_ms) + ", allowed: more than broker.connect_timeout (" +
                     show_time(connect_ms) + ")");
  }
}

}  // namespace

void load_service(Section& root, Config& config) {
  config.service = host_name();
  if (const auto value = root.find("service")) {
    if (auto text = value->text()) {
      if (check_name(*value, *text)) config.service = std::move(*text);
    }
  }
}

void load_consume(Section& root, Config& config) {
  const auto value = root.find("consume");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  section.read_choice<bool>("undeliverable", config.undeliverable_reject,
                            {{"park", false}, {"reject", true}});
  section.read_time_ms("hold_max", config.hold_max_ms, 0);
  if (const auto stores = section.find("stores")) {
    if (const auto items = stores->sequence("stores")) {
      // Empty would mean that nothing is ever fetched, which nobody wants; read as "all" it would be a hole.
      if (items->empty()) stores->error("is empty, allowed: one or more names of `stores`");
      for (const Value& item : *items)
        if (auto name = read_store_name(item, config)) config.consume_stores.push_back(std::move(*name));
    }
  }
  section.finish();
}

void load_limits(Section& root, Config& config) {
  if (const auto value = root.find("limits")) {
    Section section(*value);
    if (!section.ok()) return;
    Limits& limits = config.limits;
    section.read_integer("sessions", limits.sessions, 1, 1000000);
    section.read_integer("tcp_sessions", limits.tcp_sessions, 1, 1000000);
    // One channel of the broker connection is bellhop's own, and channel 0 is no channel.
    section.read_integer("channels_per_session", limits.channels_per_session, 1, 65534);
    section.read_bytes("message_bytes", limits.message_bytes, 1);
    section.read_bytes("inflight_bytes", limits.inflight_bytes, 1);
    section.read_integer("transfers_per_session", limits.transfers_per_session, 1, 65535);
    section.read_time_ms("handshake_timeout", limits.handshake_timeout_ms, 1);
    section.read_time_ms("drain_timeout", limits.drain_timeout_ms, 0);
    section.finish();
  }
  check_timeouts(root, config);
}

void load_log(Section& root, Config& config) {
  const auto value = root.find("log");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  section.read_choice<LogLevel>("level", config.log_level,
                                {{"trace", LogLevel::trace},
                                 {"debug", LogLevel::debug},
                                 {"info", LogLevel::info},
                                 {"warn", LogLevel::warn},
                                 {"error", LogLevel::error}});
  section.read_choice<bool>("format", config.log_json, {{"text", false}, {"json", true}});
  section.finish();
}

}  // namespace bellhop::config
