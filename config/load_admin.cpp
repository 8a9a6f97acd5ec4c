// admin: where bellhop is watched and told what to do while it runs.
#include <sys/un.h>

#include <algorithm>

#include "config/host_port.h"
#include "config/load_sections.h"

namespace bellhop::config {

namespace {

constexpr size_t unix_path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

bool is_listened_on(const Config& config, const std::string& path) {
  return std::any_of(config.listen.begin(), config.listen.end(), [&](const Listen& each) {
    const auto* socket = std::get_if<UnixListen>(&each);
    return socket != nullptr && socket->path == path;
  });
}

// admin.sock beside the first Unix listener. Empty: there is none, or the name has no room or is taken.
std::string default_socket(const Config& config) {
  for (const Listen& each : config.listen) {
    const auto* socket = std::get_if<UnixListen>(&each);
    if (socket == nullptr) continue;
    const size_t slash = socket->path.rfind('/');
    std::string path = (slash == std::string::npos ? "" : socket->path.substr(0, slash + 1)) + "admin.sock";
    return path.size() > unix_path_bytes_max || is_listened_on(config, path) ? "" : path;
  }
  return "";
}

void read_socket(const Value& value, const Config& config, Admin& admin) {
  const auto text = value.text();
  if (!text) return;
  if (text->empty()) {
    value.error("is empty, allowed: a path");
  } else if (text->size() > unix_path_bytes_max) {
    value.error("has " + std::to_string(text->size()) + " bytes, allowed: at most " +
                std::to_string(unix_path_bytes_max) +
                ", which is all that the kernel takes for a socket's path");
  } else if (is_listened_on(config, *text)) {
    value.error_with_value("is a socket of `listen`, allowed: another path");
  } else {
    admin.socket = *text;
    admin.is_default_socket = false;
  }
}

void read_tcp(const Value& value, const Config& config, Admin& admin) {
  const auto text = value.text();
  if (!text) return;
  const Result<HostPort> parsed = parse_host_port(*text);
  if (!parsed || !parsed.value().port) {
    value.error_with_value((parsed ? "has no port" : parsed.error()) +
                           ", allowed: host:port, as in 127.0.0.1:9419 or [::1]:9419");
    return;
  }
  AdminTcp tcp{parsed.value().host, *parsed.value().port};
  for (const Listen& each : config.listen) {
    const auto* other = std::get_if<TcpListen>(&each);
    if (other != nullptr && tcp.port != 0 && other->port == tcp.port && other->host == tcp.host) {
      value.error_with_value("is an address of `listen`, allowed: another port");
      return;
    }
  }
  admin.tcp = std::move(tcp);
}

}  // namespace

void load_admin(Section& root, Config& config) {
  Admin& admin = config.admin;
  admin.socket = default_socket(config);
  const auto value = root.find("admin");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  if (const auto socket = section.find("socket")) read_socket(*socket, config, admin);
  if (const auto tcp = section.find("tcp")) read_tcp(*tcp, config, admin);
  section.read("watch", admin.watch);
  section.finish();
}

}  // namespace bellhop::config
