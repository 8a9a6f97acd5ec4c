#include "daemon/ops/service_environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace bellhop {

namespace {

constexpr const char* variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                     "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
constexpr uint64_t inherited_max = 1024;  // far more than anybody listens on

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

std::string shown(const char* name, std::string_view value) {
  return std::string(name) + "=" + std::string(value.substr(0, 100));
}

// `a:b::d` are four. Fewer than `count`: the last ones have none.
std::vector<std::string> names_in(std::string_view text, size_t count) {
  std::vector<std::string> names(count);
  for (std::string& name : names) {
    const size_t colon = text.find(':');
    name = text.substr(0, colon);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return names;
}

}  // namespace

Result<ServiceEnvironment> parse_service_environment(const std::function<const char*(const char*)>& get,
                                                     pid_t self) {
  const auto value = [&get](const char* name) -> std::string_view {
    const char* const text = get(name);
    return text == nullptr ? std::string_view() : std::string_view(text);
  };
  const auto own = static_cast<uint64_t>(self);
  ServiceEnvironment out;
  out.notify_socket = value("NOTIFY_SOCKET");

  const std::string_view watchdog = value("WATCHDOG_USEC"), watchdog_pid = value("WATCHDOG_PID");
  if (!watchdog.empty() && (watchdog_pid.empty() || number_in(watchdog_pid) == own)) {
    if (const auto us = number_in(watchdog); us && *us > 0)
      out.watchdog_us = *us;
    else
      out.warnings.push_back(shown("WATCHDOG_USEC", watchdog) +
                             " is no number of microseconds: no signs of life are sent");
  }

  const std::string_view fds = value("LISTEN_FDS");
  if (fds.empty() || number_in(value("LISTEN_PID")) != own) return out;
  const auto count = number_in(fds);
  if (!count || *count > inherited_max)
    return Error{shown("LISTEN_FDS", fds) + " is no number of inherited sockets, allowed: 0 to " +
                 std::to_string(inherited_max)};
  out.inherited = names_in(value("LISTEN_FDNAMES"), *count);
  return out;
}

Result<ServiceEnvironment> take_service_environment() {
  auto taken = parse_service_environment([](const char* name) { return std::getenv(name); }, ::getpid());
  for (const char* name : variables) ::unsetenv(name);
  return taken;
}

}  // namespace bellhop
