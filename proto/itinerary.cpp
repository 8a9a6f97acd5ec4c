#include "proto/itinerary.h"

#include <cstdio>
#include <ctime>

#include "proto/json_members.h"
#include "proto/routing_slip.h"
#include "proto/table.h"

namespace bellhop::proto {

namespace {

// A completion time of our own, to measure with.
constexpr std::string_view some_time = "2026-09-09T16:18:09Z";

void add_unknown(std::string& unknown, const JsonMember& member) {
  if (!unknown.empty()) unknown += ',';
  unknown += json_compact(member.key);
  unknown += ':';
  unknown += json_compact(member.value);
}

Result<Stop> read_stop(std::string_view json) {
  if (!is_json_object(json)) return Error{"a stop that is no object"};
  Stop stop;
  for (const JsonMember& member : json_members(json)) {
    const std::string key = json_text(member.key).value_or(std::string());
    std::string* known = key == "exchange"      ? &stop.exchange
                         : key == "routingKey"  ? &stop.routing_key
                         : key == "name"        ? &stop.name
                         : key == "completedAt" ? &stop.completed_at
                                                : nullptr;
    if (known == nullptr) {
      add_unknown(stop.unknown, member);
      continue;
    }
    auto text = json_text(member.value);
    if (!text) return Error{"a stop whose `" + key + "` is no text"};
    *known = std::move(*text);
  }
  return stop;
}

Result<std::vector<Stop>> read_stops(std::string_view json, const char* key) {
  if (!is_json_array(json)) return Error{"`" + std::string(key) + "` is no array"};
  std::vector<Stop> stops;
  for (const JsonMember& element : json_members(json)) {
    auto stop = read_stop(element.value);
    if (!stop) return Error{std::string(key) + "[" + std::to_string(stops.size()) + "]: " + stop.error()};
    stops.push_back(std::move(stop.value()));
  }
  return stops;
}

void write_stop(std::string& out, const Stop& stop) {
  out += "{\"exchange\":" + json_quoted(stop.exchange) + ",\"routingKey\":" + json_quoted(stop.routing_key);
  if (!stop.name.empty()) out += ",\"name\":" + json_quoted(stop.name);
  if (!stop.completed_at.empty()) out += ",\"completedAt\":" + json_quoted(stop.completed_at);
  if (!stop.unknown.empty()) out += ',' + stop.unknown;
  out += '}';
}

void write_stops(std::string& out, const std::vector<Stop>& stops) {
  out += '[';
  for (size_t at = 0; at < stops.size(); ++at) {
    if (at != 0) out += ',';
    write_stop(out, stops[at]);
  }
  out += ']';
}

Error itinerary_error(const std::string& what) {
  return Error{"header " + std::string(itinerary_header) + ": " + what};
}

}  // namespace

Result<Itinerary> Itinerary::start_of(std::vector<Stop> stops) {
  if (stops.empty()) return Error{"an itinerary needs at least one stop"};
  if (stops.size() > slip_steps_max) {
    return Error{"an itinerary of " + std::to_string(stops.size()) + " stops: at most " +
                 std::to_string(slip_steps_max) + " are allowed"};
  }
  Itinerary itinerary;
  itinerary.steps_ = std::move(stops);
  Itinerary finished = itinerary;
  while (!finished.is_finished()) finished.advance(std::string(some_time));
  if (const size_t bytes = finished.to_json().size(); bytes > itinerary_start_bytes_max) {
    return Error{"an itinerary that takes " + std::to_string(bytes) +
                 " bytes with every stop done: at most " + std::to_string(itinerary_start_bytes_max) +
                 " are allowed"};
  }
  return itinerary;
}

Result<Itinerary> Itinerary::parse(std::string_view json) {
  if (json.size() > itinerary_json_bytes_max) {
    return itinerary_error("longer than " + std::to_string(itinerary_json_bytes_max) + " bytes");
  }
  if (!is_json(json, itinerary_depth_max)) {
    return itinerary_error("not JSON, or nested more than " + std::to_string(itinerary_depth_max) + " deep");
  }
  json.remove_prefix(json.find_first_not_of(" \t\r\n"));
  json = json.substr(0, json.find_last_not_of(" \t\r\n") + 1);
  if (!is_json_object(json)) return itinerary_error("its root is no object");

  // Of a key that is there twice the last one counts, as it does for a reader that makes a map of them.
  Itinerary itinerary;
  std::string_view steps, done;
  for (const JsonMember& member : json_members(json)) {
    const std::string key = json_text(member.key).value_or(std::string());
    if (key == "steps") {
      steps = member.value;
    } else if (key == "done") {
      done = member.value;
    } else {
      add_unknown(itinerary.unknown_, member);
    }
  }
  if (steps != "null") {
    auto ahead = read_stops(steps, "steps");
    if (!ahead) return itinerary_error(ahead.error());
    itinerary.steps_ = std::move(ahead.value());
  }
  if (!done.empty() && done != "null") {
    auto behind = read_stops(done, "done");
    if (!behind) return itinerary_error(behind.error());
    itinerary.done_ = std::move(behind.value());
  }
  return itinerary;
}

void Itinerary::advance(std::string completed_at) {
  if (steps_.empty()) return;
  Stop stop = std::move(steps_.front());
  steps_.erase(steps_.begin());
  stop.completed_at = std::move(completed_at);
  done_.push_back(std::move(stop));
}

std::string Itinerary::to_json() const {
  std::string out = "{\"steps\":";
  write_stops(out, steps_);
  if (!done_.empty()) {
    out += ",\"done\":";
    write_stops(out, done_);
  }
  if (!unknown_.empty()) out += ',' + unknown_;
  out += '}';
  return out;
}

std::optional<std::string_view> itinerary_text(Bytes header_fields) {
  std::optional<std::string_view> text;
  TableCursor cursor(header_fields);
  while (const auto field = cursor.next()) {
    if (field->name == itinerary_header) text = field_string(*field).value_or(std::string_view{});
  }
  return text;
}

std::string utc_seconds(int64_t epoch_s) {
  const std::time_t time = epoch_s;
  std::tm parts = {};
  if (gmtime_r(&time, &parts) == nullptr) return utc_seconds(0);
  char text[64];
  const int bytes = std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900,
                                  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return std::string(text, static_cast<size_t>(bytes));
}

}  // namespace bellhop::proto
