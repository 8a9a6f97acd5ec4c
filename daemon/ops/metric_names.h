// The words that metrics and /status have as labels: from the configuration, or from small fixed sets. Never
// a queue, a key, a client or anything else of a message. A counter of a route, a store, a step or a pipeline
// stands at its number here. Numbers stay: a configuration that is read again appends what is new to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
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

// Names in the order of their numbers.
class NumberedNames {
 public:
  void add(const std::string& name) {
    if (numbers_.emplace(name, names_.size()).second) names_.push_back(name);
  }
  // Nothing: it was never added.
  std::optional<size_t> number(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }
  size_t size() const { return names_.size(); }
  const std::string& operator[](size_t number) const { return names_[number]; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> numbers_;
};

class MetricNames {
 public:
  struct Step {
    std::string pipeline, step;
  };

  MetricNames() {
    routes.add("(no route)");
    pipelines.add("(no pipeline)");
    add_step("(no pipeline)", "(other)");
  }
  // Appends what is not here yet.
  void add(const config::Config& config) {
    for (const config::Route& route : config.routes) routes.add(route.name);
    for (const config::Store& store : config.stores) stores.add(store.name);
    for (const config::Pipeline& pipeline : config.pipelines) {
      pipelines.add(pipeline.name);
      for (const std::string& step : pipeline.steps) add_step(pipeline.name, step);
    }
  }
  // 0: none that was added.
  size_t route(const std::string& name) const { return routes.number(name).value_or(0); }
  size_t pipeline(const std::string& name) const { return pipelines.number(name).value_or(0); }
  // The step whose result a hop is. 0: none that was added.
  size_t step(const std::string& pipeline, const std::string& step) const {
    return step_numbers_.number(step_key(pipeline, step)).value_or(0);
  }

  NumberedNames routes, stores, pipelines;  // routes[0], pipelines[0]: none
  std::vector<Step> steps;                  // steps[0]: any other

 private:
  static std::string step_key(const std::string& pipeline, const std::string& step) {
    return pipeline + '\0' + step;
  }
  void add_step(const std::string& pipeline, const std::string& step) {
    step_numbers_.add(step_key(pipeline, step));
    if (step_numbers_.size() != steps.size()) steps.push_back({pipeline, step});
  }

  NumberedNames step_numbers_;
};

}  // namespace bellhop
