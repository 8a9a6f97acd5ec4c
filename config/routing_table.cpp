#include "config/routing_table.h"

#include <algorithm>

#include "proto/routing_slip.h"
#include "proto/table.h"
#include "proto/uuid.h"

namespace bellhop::config {

namespace {

constexpr size_t compared_max = 16;  // so many routes are compared one by one

std::optional<proto::Itinerary> itinerary_of(const Route& route) {
  if (route.slip_itinerary.empty()) return {};
  std::vector<proto::Stop> stops;
  for (const ItineraryStop& stop : route.slip_itinerary) {
    proto::Stop out;
    out.exchange = stop.exchange;
    out.routing_key = stop.routing_key;
    out.name = stop.name;
    stops.push_back(std::move(out));
  }
  auto itinerary = proto::Itinerary::start_of(std::move(stops));
  if (!itinerary) return {};  // the loader has refused it
  return std::move(itinerary.value());
}

std::optional<std::string> exact_key(const Route& route) {
  if (!route.match_routing_key) return {};
  for (const std::string& word : topic_words(*route.match_routing_key)) {
    if (word == "*" || word == "#") return {};
  }
  return route.match_routing_key;
}

// Empty: there is no slip.
Buffer slip_fields_of(const Plan& plan) {
  Buffer fields;
  if (plan.itinerary) {
    proto::put_field(fields, proto::itinerary_header, plan.itinerary->to_json());
  } else if (plan.pipeline != nullptr) {
    // The place of the run id. The loader has refused what is no slip.
    const auto slip = proto::RoutingSlip::start_of(plan.pipeline->steps,
                                                   std::string(proto::UuidGenerator::Text().size(), '0'));
    if (slip) slip.value().to_headers(fields);
  }
  return fields;
}

Plan plan_of(const Route& route, size_t counter, const Pipeline* pipeline) {
  Plan plan;
  plan.counter = counter;
  plan.name = route.name;
  plan.claim_check = route.claim_check;
  plan.stamp = route.stamp;
  plan.to_exchange = route.to_exchange;
  plan.to_routing_key = route.to_routing_key;
  plan.named_exchange = route.to_exchange ? route.to_exchange : route.match_exchange;
  plan.named_routing_key = route.to_routing_key ? route.to_routing_key : exact_key(route);
  plan.pipeline = pipeline;
  plan.itinerary = itinerary_of(route);
  plan.slip_fields = slip_fields_of(plan);
  for (const auto& [name, text] : route.headers) {
    Plan::StaticHeader header{name, {}};
    proto::put_field(header.encoded, name, text);
    plan.headers.push_back(std::move(header));
  }
  return plan;
}

bool has_header(Bytes header_fields, const std::string& name, const std::string& text) {
  // Of a header that is there twice the last one counts, as it does for a reader that makes a map of them.
  bool matches = false;
  proto::TableCursor cursor(header_fields);
  while (const auto field = cursor.next()) {
    if (field->name == name) matches = proto::field_text(*field) == text;
  }
  return matches;
}

}  // namespace

RoutingTable::RoutingTable(std::shared_ptr<const Config> config,
                           const std::function<size_t(const std::string& route)>& counter_of)
    : config_(std::move(config)) {
  default_plan_.claim_check = config_->claim_check;
  default_plan_.stamp = config_->stamp;
  rules_.reserve(config_->routes.size());
  std::unordered_map<std::string_view, const Pipeline*> pipelines;
  for (const Pipeline& each : config_->pipelines) pipelines.emplace(each.name, &each);
  for (const Route& route : config_->routes) {
    const auto named = pipelines.find(route.slip_pipeline);
    rules_.push_back(
        {&route, topic_words(route.match_routing_key.value_or("")),
         plan_of(route, counter_of(route.name), named == pipelines.end() ? nullptr : named->second)});
    by_name_.emplace(route.name, rules_.size() - 1);
    if (!route.match_headers.empty()) matches_on_headers_ = true;
  }
  if (rules_.size() <= compared_max) return;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Route& route = *rules_[i].route;
    Place place;  // of views into the configuration
    if (route.match_exchange) place.exchange = *route.match_exchange;
    if (exact_key(route)) place.key = *route.match_routing_key;
    by_place_[place].push_back(i);
  }
}

size_t RoutingTable::PlaceHash::operator()(const Place& place) const {
  const std::hash<std::optional<std::string_view>> hash;
  return hash(place.exchange) * 31 + hash(place.key);
}

bool RoutingTable::matches(const Rule& rule, std::string_view exchange, std::string_view routing_key,
                           Bytes header_fields) {
  const Route& route = *rule.route;
  if (route.match_exchange && *route.match_exchange != exchange) return false;
  if (route.match_routing_key && !topic_matches(rule.key_words, routing_key)) return false;
  for (const auto& [name, text] : route.match_headers) {
    if (!has_header(header_fields, name, text)) return false;
  }
  return true;
}

const Plan& RoutingTable::find(std::string_view exchange, std::string_view routing_key,
                               Bytes header_fields) const {
  if (by_place_.empty()) {
    for (const Rule& rule : rules_) {
      if (matches(rule, exchange, routing_key, header_fields)) return rule.plan;
    }
    return default_plan_;
  }
  size_t first = rules_.size();
  for (const Place& place :
       {Place{exchange, routing_key}, Place{exchange, {}}, Place{{}, routing_key}, Place{}}) {
    const auto found = by_place_.find(place);
    if (found == by_place_.end()) continue;
    for (const size_t i : found->second) {
      if (i >= first) break;
      if (matches(rules_[i], exchange, routing_key, header_fields)) first = i;
    }
  }
  return first == rules_.size() ? default_plan_ : rules_[first].plan;
}

const Plan* RoutingTable::by_name(std::string_view route) const {
  const auto found = by_name_.find(route);
  if (found == by_name_.end()) return nullptr;
  const Plan& plan = rules_[found->second].plan;
  const bool concrete =
      plan.pipeline != nullptr || plan.itinerary || (plan.named_exchange && plan.named_routing_key);
  return concrete ? &plan : nullptr;
}

const Pipeline* RoutingTable::pipeline(std::string_view name) const {
  for (const Pipeline& pipeline : config_->pipelines) {
    if (pipeline.name == name) return &pipeline;
  }
  return nullptr;
}

const Pipeline* RoutingTable::only_pipeline_with(std::string_view step) const {
  const Pipeline* only = nullptr;
  for (const Pipeline& pipeline : config_->pipelines) {
    for (const std::string& each : pipeline.steps) {
      if (each != step) continue;
      if (only != nullptr) return nullptr;
      only = &pipeline;
      break;
    }
  }
  return only;
}

PipelineStep RoutingTable::step_of_queue(std::string_view queue) const {
  // A pipeline's name may begin with another's: a step that is configured decides, else the longest name.
  PipelineStep found;
  for (const Pipeline& pipeline : config_->pipelines) {
    const size_t name_bytes = pipeline.name.size();
    if (queue.size() <= name_bytes + 1 || !queue.starts_with(pipeline.name) || queue[name_bytes] != '.')
      continue;
    for (const std::string& step : pipeline.steps) {
      if (queue.substr(name_bytes + 1) == step) return {&pipeline, &step};
    }
    if (found.pipeline == nullptr || found.pipeline->name.size() < name_bytes) found.pipeline = &pipeline;
  }
  return found;
}

PipelineStep RoutingTable::find(const StepName& name) const {
  PipelineStep found;
  found.pipeline = pipeline(name.pipeline);
  if (found.pipeline == nullptr) return found;
  const auto step = std::find(found.pipeline->steps.begin(), found.pipeline->steps.end(), name.step);
  if (step != found.pipeline->steps.end()) found.step = &*step;
  return found;
}

bool RoutingTable::may_send_to(std::string_view exchange) const {
  for (const std::string& allowed : config_->slip_allowed_exchanges) {
    if (allowed == exchange) return true;
  }
  return false;
}

}  // namespace bellhop::config
