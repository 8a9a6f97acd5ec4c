#include "daemon/cli/admin_commands.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "config/load.h"
#include "daemon/cli/admin_client.h"
#include "daemon/cli/status_text.h"

namespace bellhop {

namespace {

constexpr uint64_t answer_ms_max = 5000, health_ms_max = 1000;
constexpr std::chrono::seconds watch_pause{2}, reload_wait_max{60};
constexpr std::chrono::milliseconds reload_pause{50};
constexpr const char* clear_screen = "\033[H\033[2J";

// Nothing, and why is told: the configuration is wrong, or names no socket.
std::optional<AdminClient> client_for(const AdminPlace& place, std::ostream& err) {
  if (!place.socket.empty()) return AdminClient(place.socket);
  if (place.config_file.empty()) return AdminClient("/run/bellhop/admin.sock");
  const config::Loaded loaded = config::load_file(place.config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return {};
  if (loaded.config.admin.socket.empty()) {
    err << "bellhop: " << place.config_file << " gives bellhop no admin socket: set admin.socket\n";
    return {};
  }
  return AdminClient(loaded.config.admin.socket);
}

int tell(const Result<AdminClient::Answer>& answer, std::ostream& out, std::ostream& err) {
  if (!answer) {
    err << "bellhop: " << answer.error() << '\n';
    return 1;
  }
  const bool done = answer.value().status < 300;
  (done ? out : err) << answer.value().body;
  return done ? 0 : 1;
}

int show_once(const AdminClient& client, bool as_json, bool redraw, std::ostream& out, std::ostream& err) {
  const auto answer = client.get("/status", answer_ms_max);
  if (redraw) out << clear_screen;
  if (as_json || !answer || answer.value().status != 200) return tell(answer, out, err);
  const Result<std::string> text = status_text(answer.value().body);
  if (!text) {
    err << "bellhop: " << text.error() << '\n';
    return 1;
  }
  out << text.value();
  return 0;
}

int tell_reload(const nlohmann::json& config, bool as_json, std::ostream& out, std::ostream& err) {
  const bool done = config.value("last_reload_successful", false);
  const auto problems = config.value("problems", std::vector<std::string>());
  if (as_json) {
    out << config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return done ? 0 : 2;
  }
  for (const std::string& each : problems) err << each << '\n';
  if (done)
    out << "configuration number " << config.value("generation", uint64_t{0}) << " is in use\n";
  else
    err << "bellhop: not reloaded: configuration number " << config.value("generation", uint64_t{0})
        << " stays in use\n";
  return done ? 0 : 2;
}

}  // namespace

int show_status(const AdminPlace& place, bool as_json, bool watch, std::ostream& out, std::ostream& err) {
  const auto client = client_for(place, err);
  if (!client) return 2;
  if (!watch) return show_once(*client, as_json, false, out, err);
  while (out) {  // it ends when nobody reads
    show_once(*client, as_json, !as_json, out, err);
    out.flush();
    std::this_thread::sleep_for(watch_pause);
  }
  return 1;
}

int show_health(const AdminPlace& place, bool ready, std::ostream& out, std::ostream& err) {
  const auto client = client_for(place, err);
  if (!client) return 2;
  return tell(client->get(ready ? "/readyz" : "/healthz", health_ms_max), out, err);
}

int reload(const AdminPlace& place, bool as_json, std::ostream& out, std::ostream& err) {
  const auto client = client_for(place, err);
  if (!client) return 2;
  const auto asked = client->post("/reload", "", answer_ms_max);
  if (!asked || asked.value().status != 202) return tell(asked, out, err);
  const uint64_t look = std::strtoull(asked.value().body.c_str(), nullptr, 10);
  const auto give_up_at = std::chrono::steady_clock::now() + reload_wait_max;
  while (std::chrono::steady_clock::now() < give_up_at) {
    const auto answer = client->get("/status", answer_ms_max);
    if (!answer || answer.value().status != 200) return tell(answer, out, err);
    const auto status = nlohmann::json::parse(answer.value().body, nullptr, false);
    const nlohmann::json config = status.is_object() ? status.value("config", nlohmann::json()) : status;
    if (!config.is_object()) {
      err << "bellhop: the bellhop that runs answers what this one does not understand\n";
      return 1;
    }
    if (config.value("looks", uint64_t{0}) >= look) return tell_reload(config, as_json, out, err);
    std::this_thread::sleep_for(reload_pause);
  }
  err << "bellhop: not reloaded within " << reload_wait_max.count()
      << " s: a file or a store's place stands still. bellhop goes on trying; its log and `bellhop status` "
         "say "
         "how it ended\n";
  return 1;
}

int show_messages(const AdminPlace& place, const TapOptions& options, std::ostream& out, std::ostream& err) {
  const auto client = client_for(place, err);
  return client ? tap(*client, options, out, err) : 2;
}

int begin_drain(const AdminPlace& place, std::ostream& out, std::ostream& err) {
  const auto client = client_for(place, err);
  if (!client) return 2;
  return tell(client->post("/drain", "", answer_ms_max), out, err);
}

int change_log_level(const AdminPlace& place, const std::string& level, std::ostream& out,
                     std::ostream& err) {
  const auto client = client_for(place, err);
  if (!client) return 2;
  return tell(client->post("/log-level", level, answer_ms_max), out, err);
}

}  // namespace bellhop
