// routes: which publishes are treated differently, and how.
#include <set>
#include <string_view>
#include <unordered_set>

#include "config/load_sections.h"
#include "config/names.h"
#include "config/topic.h"
#include "proto/itinerary.h"

namespace bellhop::config {

namespace {

std::optional<std::string> read_exchange(Section& section, const std::string& key = "exchange") {
  const auto value = section.find(key);
  if (!value) return {};
  auto text = value->text();
  if (text) check_exchange(*value, *text);
  return text;
}

// `order#` is a word of six characters to a broker and to bellhop.
void warn_of_wildcard(const Value& value, const std::string& pattern) {
  for (const std::string& word : topic_words(pattern)) {
    const size_t at = word.find_first_of("*#");
    if (at == std::string::npos || word.size() == 1) continue;
    const char wildcard = word[at];
    value.warning(
        quoted(word) + " is taken as it is written: " + wildcard +
        " stands for other words only as a word of its own, between dots, as in " +
        (at == 0 ? std::string{wildcard} + "." + word.substr(1) : word.substr(0, at) + "." + wildcard));
    return;
  }
}

std::optional<std::string> read_routing_key(Section& section) {
  const auto value = section.find("routing_key");
  if (!value) return {};
  auto text = value->text();
  if (text) check_short_string(*value, *text);
  return text;
}

std::vector<std::pair<std::string, std::string>> read_headers(const Value& value, bool only_matched) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto entries = value.named("header names and values");
  if (!entries) return out;
  for (const auto& [name, item] : *entries) {
    const bool named = check_header_name(item, name, only_matched);
    auto text = item.text();
    if (named && text) out.emplace_back(name, std::move(*text));
  }
  return out;
}

void read_match(const Value& value, Route& route) {
  Section section(value);
  if (!section.ok()) return;
  route.match_exchange = read_exchange(section);
  route.match_routing_key = read_routing_key(section);
  if (route.match_routing_key) warn_of_wildcard(*section.find("routing_key"), *route.match_routing_key);
  if (const auto headers = section.find("headers")) {
    for (auto& [name, text] : read_headers(*headers, true))
      route.match_headers.emplace(name, std::move(text));
  }
  section.finish();
}

void read_to(const Value& value, Route& route) {
  Section section(value);
  if (!section.ok()) return;
  route.to_exchange = read_exchange(section);
  route.to_routing_key = read_routing_key(section);
  if (!section.find("exchange") && !section.find("routing_key"))
    value.error("is empty, allowed: exchange, routing_key or both");
  section.finish();
}

std::vector<ItineraryStop> read_itinerary(const Value& value) {
  std::vector<ItineraryStop> out;
  const auto items = value.sequence("stops, as in { exchange: e, routing_key: k, name: n }");
  if (!items) return out;
  std::vector<proto::Stop> stops;
  bool good = true;
  for (const Value& item : *items) {
    Section section(item);
    good = good && section.ok();
    if (!section.ok()) continue;
    const auto exchange = read_exchange(section);
    if (!section.find("exchange")) {
      section.missing("exchange", "is missing, allowed: an exchange's name; the default exchange is \"\"");
      good = false;
    }
    ItineraryStop stop{exchange.value_or(""), read_routing_key(section).value_or(""), ""};
    section.read("name", stop.name);
    if (exchange && exchange->empty() && stop.routing_key.empty() && !section.find("routing_key")) {
      section.missing("routing_key",
                      "is missing, allowed: a queue's name, which is what the default exchange sends by");
      good = false;
    }
    section.finish();
    proto::Stop start;
    start.exchange = stop.exchange;
    start.routing_key = stop.routing_key;
    start.name = stop.name;
    stops.push_back(std::move(start));
    out.push_back(std::move(stop));
  }
  if (good) {
    const auto itinerary = proto::Itinerary::start_of(std::move(stops));
    if (!itinerary) value.error(itinerary.error());
  }
  return out;
}

using Names = std::unordered_set<std::string_view>;

void read_slip(const Value& value, const Config& config, const Names& pipelines, Route& route) {
  Section section(value);
  if (!section.ok()) return;
  const auto pipeline = section.find("pipeline");
  const auto itinerary = section.find("itinerary");
  if (pipeline.has_value() == itinerary.has_value())
    value.error(
        std::string(pipeline ? "has both pipeline and itinerary" : "has neither pipeline nor itinerary") +
        ", allowed: one of the two");
  if (pipeline) {
    if (auto name = pipeline->text()) {
      if (!pipelines.contains(*name)) {
        std::vector<std::string> names;
        for (const Pipeline& each : config.pipelines) names.push_back(each.name);
        pipeline->error_with_value(
            "is no configured pipeline, allowed: " +
            (names.empty() ? "a pipeline of `pipelines`, which has none" : listed(names)));
      }
      route.slip_pipeline = std::move(*name);
    }
  }
  if (itinerary) route.slip_itinerary = read_itinerary(*itinerary);
  section.finish();
}

Route read_route(const Value& item, const Config& config, const Names& pipelines) {
  Route route;
  route.claim_check = config.claim_check;
  route.stamp = config.stamp;
  Section section(item);
  if (!section.ok()) return route;
  if (const auto name = section.find("name")) {
    if (auto text = name->text()) {
      if (check_name(*name, *text)) route.name = std::move(*text);
    }
  } else {
    section.missing("name", "is missing, allowed: a name that no other route has");
  }
  if (const auto match = section.find("match")) read_match(*match, route);
  const auto to = section.find("to");
  if (to) read_to(*to, route);
  const auto slip = section.find("slip");
  if (slip) read_slip(*slip, config, pipelines, route);
  if (to && slip)
    to->error("stands beside slip, which sends the message to its own first step, allowed: one of the two");
  if (const auto claim_check = section.find("claim_check"))
    read_claim_check(*claim_check, config, route.claim_check);
  if (const auto headers = section.find("headers")) route.headers = read_headers(*headers, false);
  if (const auto stamp = section.find("stamp")) read_stamp(*stamp, route.stamp);
  section.finish();
  return route;
}

}  // namespace

void load_routes(Section& root, Config& config) {
  const auto value = root.find("routes");
  if (!value) return;
  const auto items = value->sequence("routes, each with its name");
  if (!items) return;
  Names pipelines;
  for (const Pipeline& each : config.pipelines) pipelines.insert(each.name);
  std::set<std::string> seen;
  for (const Value& item : *items) {
    Route route = read_route(item, config, pipelines);
    if (!route.name.empty() && !seen.insert(route.name).second) {
      Section section(item);
      section.find("name")->error(
          quoted(route.name) + " is the name of an earlier route, allowed: a name that no other route has");
    }
    config.routes.push_back(std::move(route));
  }
}

}  // namespace bellhop::config
