#include "daemon/cli/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace bellhop {

namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string count(const Json& number) {
  return std::to_string(number.get<uint64_t>());
}

std::string size(uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

uint64_t sum(const Json& numbers) {
  uint64_t all = 0;
  for (const Json& each : numbers) all += each.get<uint64_t>();
  return all;
}

// `a 1, b 2`, without what is 0.
std::string what_there_is(const Json& numbers) {
  std::string out;
  for (const auto& [name, number] : numbers.items()) {
    if (number != 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count(number));
  }
  return out.empty() ? "none" : out;
}

// The first column is a name and stands left, all others right. What a client calls itself may hold anything:
// a control character would move the terminal's cursor.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line = fmt::format("  {:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
        '?');
    out += line + '\n';
  }
  return out;
}

std::string trouble(const Json& status) {
  std::string out;
  for (const Json& check : status.at("checks")) {
    if (!check.at("ok").get<bool>())
      out += fmt::format("NOT READY     {}: {}\n", check.at("name").get<std::string>(),
                         check.at("text").get<std::string>());
  }
  if (const Json& config = status.at("config"); !config.at("last_reload_successful").get<bool>()) {
    out += "RELOAD FAILED the configuration before it is in use\n";
    for (const Json& problem : config.at("problems"))
      out += "              " + problem.get<std::string>() + "\n";
  }
  if (status.at("broker").at("blocked") != 0)
    out +=
        fmt::format("BLOCKED       the broker takes no publishes of {} sessions: its memory or disk alarm\n",
                    count(status.at("broker").at("blocked")));
  if (status.at("held") != 0)
    out += fmt::format("HELD          {} deliveries wait for a store that cannot be reached\n",
                       count(status.at("held")));
  return out.empty() ? "ready\n" : out;
}

std::string routes(const Json& status) {
  std::vector<Row> rows{{"route", "confirmed", "nacked", "returned", "refused", "unconfirmed", "bytes"}};
  for (const Json& route : status.at("routes")) {
    Row row{route.at("name").get<std::string>()};
    for (const Json& each : route.at("publishes")) row.push_back(count(each));
    row.push_back(size(route.at("bytes").get<uint64_t>()));
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string stores(const Json& status) {
  if (status.at("stores").empty()) return "";
  std::vector<Row> rows{
      {"store", "", "offloaded", "failed", "bytes", "restored", "missing", "corrupt", "unavailable"}};
  for (const Json& store : status.at("stores")) {
    Row row{store.at("name").get<std::string>(), store.at("works").get<bool>() ? "works" : "FAILS",
            count(store.at("offloads").at("ok")), count(store.at("offloads").at("failed")),
            size(store.at("offload_bytes").get<uint64_t>())};
    for (const Json& each : store.at("restores")) row.push_back(count(each));
    rows.push_back(std::move(row));
  }
  return "\n" + table(rows);
}

std::string steps(const Json& status) {
  std::vector<Row> rows{{"step", "forwarded", "finished", "returned", "refused"}};
  for (const Json& step : status.at("steps")) {
    if (step.at("step") == "(other)" && sum(step.at("hops")) == 0) continue;
    Row row{step.at("pipeline").get<std::string>() + "." + step.at("step").get<std::string>()};
    for (const Json& each : step.at("hops")) row.push_back(count(each));
    rows.push_back(std::move(row));
  }
  return rows.size() == 1 ? "" : "\n" + table(rows);
}

std::string sessions(const Json& status) {
  if (status.at("sessions").empty()) return "\n  no client is connected\n";
  std::vector<Row> rows{{"session", "id", "channels", "unconfirmed", "held", "seconds"}};
  for (const Json& session : status.at("sessions")) {
    const auto client = session.at("client").get<std::string>();
    rows.push_back({client.empty() ? session.at("peer").get<std::string>() : client, count(session.at("id")),
                    count(session.at("channels")), count(session.at("unconfirmed")),
                    count(session.at("held")), count(session.at("age_seconds"))});
  }
  return "\n" + table(rows);
}

}  // namespace

Result<std::string> status_text(const std::string& json) {
  try {
    const Json status = Json::parse(json);
    const Json& config = status.at("config");
    const Json& broker = status.at("broker");
    const Json& memory = status.at("memory");
    return trouble(status) +
           fmt::format("bellhop       {} {} pid {}, since {}, log level {}\n",
                       status.at("service").get<std::string>(), status.at("version").get<std::string>(),
                       count(status.at("pid")), status.at("started_at").get<std::string>(),
                       status.at("log_level").get<std::string>()) +
           fmt::format("configuration number {}, read {}\n", count(config.at("generation")),
                       config.at("read_at").get<std::string>()) +
           fmt::format("broker        {}, {} sessions there, {} connects failed\n",
                       broker.at("state").get<std::string>(), count(broker.at("sessions")),
                       count(broker.at("connects").at("failed"))) +
           fmt::format("deliveries    {}\n", what_there_is(status.at("deliveries"))) +
           fmt::format("parked        {}\n", what_there_is(status.at("parked"))) +
           fmt::format("closed        {}\n", what_there_is(status.at("sessions_closed"))) +
           fmt::format("memory        {} resident, {} of bodies, {} in scratch files\n\n",
                       size(memory.at("resident_bytes").get<uint64_t>()),
                       size(memory.at("inflight_bytes").get<uint64_t>()),
                       size(memory.at("scratch_bytes").get<uint64_t>())) +
           routes(status) + stores(status) + steps(status) + sessions(status);
  } catch (const Json::exception& error) {
    return Error{std::string("the bellhop that runs answers what this one does not understand (") +
                 error.what() + "); `bellhop status --json` prints it"};
  }
}

}  // namespace bellhop
