// listen: where clients connect to, and which of them may.
#include <sys/un.h>

#include <set>

#include "config/host_port.h"
#include "config/load_sections.h"
#include "config/names.h"

namespace bellhop::config {

namespace {

constexpr size_t unix_path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

std::vector<uint32_t> read_ids(Section& section, const std::string& key) {
  std::vector<uint32_t> ids;
  const auto value = section.find(key);
  if (!value) return ids;
  const auto items = value->sequence("numeric ids");
  // An empty list would read as "nobody" to one and as "everybody" to another.
  if (items && items->empty())
    value->error(
        "is an empty list, allowed: at least one id; without the key, everybody whom the mode lets in");
  for (const Value& item : items.value_or(std::vector<Value>{})) {
    if (const auto id = item.integer(0, 4294967294)) ids.push_back(static_cast<uint32_t>(*id));
  }
  return ids;
}

UnixListen read_unix(Section& section, const Value& path) {
  UnixListen out;
  if (auto text = path.text()) {
    if (text->empty()) {
      path.error("is empty, allowed: a path");
    } else if (text->size() > unix_path_bytes_max) {
      path.error("has " + std::to_string(text->size()) + " bytes, allowed: at most " +
                 std::to_string(unix_path_bytes_max) +
                 ", which is all that the kernel takes for a socket's path");
    } else {
      out.path = std::move(*text);
    }
  }
  if (const auto mode = section.find("mode"))
    if (const auto bits = mode->mode()) out.mode = *bits;
  section.read("group", out.group);
  out.allow_uids = read_ids(section, "allow_uids");
  out.allow_gids = read_ids(section, "allow_gids");
  return out;
}

void read_users(const Value& value, TcpListen& out) {
  const auto entries = value.named("users and their passwords");
  if (!entries) return;
  if (entries->empty()) value.error("is empty, allowed: at least one user and password");
  for (const auto& [user, item] : *entries) {
    const auto password = item.secret();
    if (!password || !check_name(item, user)) continue;
    if (password->empty())
      item.error("the password is empty, allowed: a password");
    else
      out.users[user] = *password;
  }
}

TcpListen read_tcp(Section& section, const Value& address, const Broker& broker) {
  TcpListen out;
  bool address_read = false;
  if (const auto text = address.text()) {
    const Result<HostPort> parsed = parse_host_port(*text);
    if (!parsed || !parsed.value().port) {
      address.error_with_value((parsed ? "has no port" : parsed.error()) +
                               ", allowed: host:port, as in 127.0.0.1:5673 or [::1]:5673");
    } else {
      out.host = parsed.value().host;
      out.port = *parsed.value().port;
      address_read = true;
    }
  }
  const auto users = section.find("users");
  if (users) read_users(*users, out);
  const auto anonymous = section.find("anonymous");
  if (anonymous)
    if (const auto boolean = anonymous->boolean()) out.anonymous = *boolean;

  if (users && out.anonymous) anonymous->error("stands beside users, allowed: one of the two");
  if (address_read && !is_loopback(out.host) && !users) {
    address.error_with_value(
        "can be reached from other hosts, allowed: a loopback address (127.0.0.1, [::1], localhost), or "
        "`users` with it");
  } else if ((broker.has_credentials() || broker.has_certificate_login()) && !users && !out.anonymous) {
    // Otherwise everybody who reaches the port would be the broker's user.
    address.error(
        "lets everybody in as the broker's user, because the configuration has the broker's credentials, "
        "allowed: `users` or `anonymous: true` with it");
  }
  return out;
}

}  // namespace

void load_listen(Section& root, Config& config) {
  const auto value = root.find("listen");
  if (!value) {
    config.listen.emplace_back(UnixListen{});
    return;
  }
  const auto items = value->sequence("`unix: path` and `tcp: host:port` entries");
  if (!items) return;
  if (items->empty())
    value->error(
        "is an empty list, allowed: at least one entry; without the key, unix: /run/bellhop/bellhop.sock");
  std::set<std::string> seen;
  for (const Value& item : *items) {
    Section section(item);
    if (!section.ok()) continue;
    const auto path = section.find("unix");
    const auto address = section.find("tcp");
    if (path.has_value() == address.has_value()) {
      item.error(path ? "has both unix and tcp, allowed: one of the two, a list entry each"
                      : "has neither unix nor tcp, allowed: one of the two");
      for (const char* key : {"mode", "group", "allow_uids", "allow_gids", "users", "anonymous"})
        section.known(key);
      section.finish();
      continue;
    }
    // Only what goes with the entry's kind is known from here on.
    Section own(item);
    if (path) {
      own.known("unix");
      UnixListen unix_listen = read_unix(own, *path);
      if (!seen.insert("unix " + unix_listen.path).second && path->text())
        path->error("is listened on twice, allowed: once");
      config.listen.emplace_back(std::move(unix_listen));
    } else {
      own.known("tcp");
      TcpListen tcp = read_tcp(own, *address, config.broker);
      if (tcp.port != 0 && !seen.insert("tcp " + show_host_port(tcp.host, tcp.port)).second)
        address->error("is listened on twice, allowed: once");
      config.listen.emplace_back(std::move(tcp));
    }
    own.finish();
  }
}

}  // namespace bellhop::config
