// The model of exchanges, routes and pipelines in which publishes are looked up. Built once from a Config and
// immutable: all sessions read it at once without a lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/config.h"
#include "config/topic.h"
#include "proto/bytes.h"
#include "proto/itinerary.h"

namespace bellhop::config {

// What bellhop does with a publish: a route's values, with everything worked out that can be.
struct Plan {
  std::string name;    // empty for the plan of publishes that no route matches
  size_t counter = 0;  // of what it does; see RoutingTable
  ClaimCheck claim_check;
  Stamp stamp;
  std::optional<std::string> to_exchange, to_routing_key;
  // Where a publish by the route's name goes, when that is clear without a client's exchange and key: from
  // `to`, else from a `match` without wildcards. (A slip has its own first step.)
  std::optional<std::string> named_exchange, named_routing_key;
  const Pipeline* pipeline = nullptr;
  std::optional<proto::Itinerary> itinerary;
  // The header fields of its slip, encoded: those of `pipeline` end with a run id, which is each message's
  // own.
  Buffer slip_fields;
  struct StaticHeader {
    std::string name;
    Buffer encoded;  // one table field
  };
  std::vector<StaticHeader> headers;
};

// Where a queue stands in the pipelines.
struct PipelineStep {
  const Pipeline* pipeline = nullptr;
  const std::string* step = nullptr;  // null: no step of it that is configured
};

// The same by its names, which outlive a table.
struct StepName {
  std::string pipeline, step;  // step: empty where PipelineStep has none
  StepName() = default;
  explicit StepName(const PipelineStep& named)
      : pipeline(named.pipeline == nullptr ? "" : named.pipeline->name),
        step(named.step == nullptr ? "" : *named.step) {}
};

class RoutingTable {
 public:
  // Keeps the shared Config alive: plans point into it. `counter_of` gives a route's Plan::counter; the
  // default plan's is 0.
  explicit RoutingTable(
      std::shared_ptr<const Config> config,
      const std::function<size_t(const std::string& route)>& counter_of = [](const std::string&) {
        return size_t{0};
      });
  RoutingTable(const RoutingTable&) = delete;
  RoutingTable& operator=(const RoutingTable&) = delete;

  // The first route that matches, else the default plan. `header_fields` is the message's headers table
  // without its length. Called for every publish: allocates nothing, but for a route that matches on headers.
  // Routes without wildcards cost the same however many there are; of those with wildcards, every one that
  // names the exchange, or none, may have to be compared. The plan lives as long as the table.
  const Plan& find(std::string_view exchange, std::string_view routing_key, Bytes header_fields) const;
  // For bellhop.route. Null: there is no such route, or it has no concrete target.
  const Plan* by_name(std::string_view route) const;
  const Pipeline* pipeline(std::string_view name) const;  // null when there is none
  // The only pipeline with that step. Null: none has it, or more than one.
  const Pipeline* only_pipeline_with(std::string_view step) const;
  // Pipeline P and its step s for queue P.s. Without the step when P has none of that name; nothing for any
  // other queue.
  PipelineStep step_of_queue(std::string_view queue) const;
  // Nothing where there is no such pipeline.
  PipelineStep find(const StepName& name) const;
  bool may_send_to(std::string_view exchange) const;  // slip.allowed_exchanges
  // False: find() depends on exchange and key alone.
  bool matches_on_headers() const { return matches_on_headers_; }

 private:
  struct Rule {
    const Route* route;
    std::vector<std::string> key_words;  // the pattern split at "."
    Plan plan;
  };
  // What a route says about exchange and key. A key with wildcards counts as any, and is compared.
  struct Place {
    std::optional<std::string_view> exchange, key;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const;
  };
  static bool matches(const Rule& rule, std::string_view exchange, std::string_view routing_key,
                      Bytes header_fields);
  std::shared_ptr<const Config> config_;
  std::vector<Rule> rules_;
  // Each place's rules, by their numbers, in order. Empty while the rules are so few that comparing is
  // cheaper.
  std::unordered_map<Place, std::vector<size_t>, PlaceHash> by_place_;
  std::unordered_map<std::string_view, size_t> by_name_;
  Plan default_plan_;
  bool matches_on_headers_ = false;  // a route does
};

}  // namespace bellhop::config
