// The words that metrics and /status have as labels: from the configuration, or from small fixed sets. Never
// a queue, a key, a client or anything else of a message. A counter of a route, a step or a pipeline stands
// at its number here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace bellhop {

// What became of a publish. refused: by bellhop itself. unconfirmed: nobody asked for a confirm, or the
// connection ended before it came.
enum class PublishOutcome : uint8_t { confirmed, nacked, returned, refused, unconfirmed };
inline constexpr std::array<const char*, 5> publish_outcome_names{"confirmed", "nacked", "returned",
                                                                  "refused", "unconfirmed"};
// relayed: as the broker sent it. inline: its frame was taken off. restored: its payload came from a store.
enum class DeliveryPath : uint8_t { relayed, unframed, restored };
inline constexpr std::array<const char*, 3> delivery_path_names{"relayed", "inline", "restored"};
enum class ParkReason : uint8_t { missing, corrupt, bad_key, store_unavailable, other };
inline constexpr std::array<const char*, 5> park_reason_names{"missing", "corrupt", "bad key",
                                                              "store unavailable", "other"};
// forwarded: to the next step. finished: after the last one. refused: bellhop or the broker did not take it.
enum class HopOutcome : uint8_t { forwarded, finished, returned, refused };
inline constexpr std::array<const char*, 4> hop_outcome_names{"forwarded", "finished", "returned", "refused"};
enum class SessionEnd : uint8_t {
  closed,
  client_lost,
  broker_lost,
  broker_closed,
  no_broker,
  refused,
  protocol,
  internal,
  drained
};
inline constexpr std::array<const char*, 9> session_end_names{
    "closed by the client", "client lost",    "broker lost", "closed by the broker", "no broker", "refused",
    "protocol error",       "internal error", "drained"};
enum class Door : uint8_t { unix_socket, tcp };
inline constexpr std::array<const char*, 2> door_names{"unix", "tcp"};

struct MetricNames {
  explicit MetricNames(const config::Config& config) {
    for (const config::Route& route : config.routes) routes.push_back(route.name);
    routes.emplace_back("(no route)");
    for (const config::Store& store : config.stores) stores.push_back(store.name);
    for (const config::Pipeline& pipeline : config.pipelines) {
      pipelines.push_back(pipeline.name);
      for (const std::string& step : pipeline.steps) steps.push_back({pipeline.name, step});
    }
    pipelines.emplace_back("(no pipeline)");
    steps.push_back({"(no pipeline)", "(other)"});
  }
  // The step whose result a hop is; the last number is for all that the configuration does not know.
  size_t step(std::string_view pipeline, std::string_view step) const {
    for (size_t i = 0; i + 1 < steps.size(); ++i)
      if (steps[i].pipeline == pipeline && steps[i].step == step) return i;
    return steps.size() - 1;
  }
  size_t pipeline(std::string_view name) const {
    for (size_t i = 0; i + 1 < pipelines.size(); ++i)
      if (pipelines[i] == name) return i;
    return pipelines.size() - 1;
  }

  struct Step {
    std::string pipeline, step;
  };
  std::vector<std::string> routes;  // in the order of the configuration; the last: no route matched
  std::vector<std::string> stores;  // in the order of the configuration
  std::vector<std::string> pipelines;
  std::vector<Step> steps;
};

}  // namespace bellhop
