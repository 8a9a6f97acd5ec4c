#include "daemon/door/inherited_sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "config/host_port.h"
#include "daemon/door/socket_address.h"
#include "daemon/ops/accounts.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

std::string place_of(const config::Listen& entry) {
  if (const auto* file = std::get_if<config::UnixListen>(&entry)) return "unix:" + file->path;
  const auto& tcp = std::get<config::TcpListen>(entry);
  return "tcp:" + config::show_host_port(tcp.host, tcp.port);
}

std::optional<int> option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0) return {};
  return value;
}

std::string mode_text(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "0%03o", static_cast<unsigned>(mode & 0777));
  return text;
}

// Empty: clients can connect to it.
std::string what_is_wrong(int fd) {
  const auto type = option_of(fd, SO_TYPE);
  if (!type) return errno == EBADF ? "is not open" : "is no socket";
  const int family = option_of(fd, SO_DOMAIN).value_or(AF_UNSPEC);
  if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
    return "is neither a Unix nor a TCP socket";
  if (type != SOCK_STREAM) return "is no stream socket";
  if (option_of(fd, SO_ACCEPTCONN) != 1) return "does not listen (Accept=yes hands over connections)";
  return "";
}

bool set_flags(int fd) {
  const int status = ::fcntl(fd, F_GETFL), own = ::fcntl(fd, F_GETFD);
  return status >= 0 && own >= 0 && ::fcntl(fd, F_SETFL, status | O_NONBLOCK) == 0 &&
         ::fcntl(fd, F_SETFD, own | FD_CLOEXEC) == 0;
}

bool is_same_tcp_address(const BoundAddress& bound, const addrinfo& wanted) {
  if (bound.address.ss_family != wanted.ai_family) return false;
  if (wanted.ai_family == AF_INET) {
    const auto& one = reinterpret_cast<const sockaddr_in&>(bound.address);
    const auto& other = reinterpret_cast<const sockaddr_in&>(*wanted.ai_addr);
    return one.sin_port == other.sin_port && one.sin_addr.s_addr == other.sin_addr.s_addr;
  }
  if (wanted.ai_family != AF_INET6) return false;
  const auto& one = reinterpret_cast<const sockaddr_in6&>(bound.address);
  const auto& other = reinterpret_cast<const sockaddr_in6&>(*wanted.ai_addr);
  return one.sin6_port == other.sin6_port && one.sin6_scope_id == other.sin6_scope_id &&
         std::memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr) == 0;
}

// Port 0 stands for any free port: no socket that is there already is meant by it.
bool serves(const BoundAddress& bound, const config::Listen& entry) {
  if (const auto* file = std::get_if<config::UnixListen>(&entry)) {
    const auto path = bound.path();
    return path && is_same_socket_path(*path, file->path);
  }
  const auto& tcp = std::get<config::TcpListen>(entry);
  if (bound.address.ss_family == AF_UNIX || tcp.port == 0) return false;
  const auto list = resolve(tcp.host, tcp.port);
  for (const addrinfo* each = list ? list.value().get() : nullptr; each != nullptr; each = each->ai_next) {
    if (is_same_tcp_address(bound, *each)) return true;
  }
  return false;
}

// What the configuration says of the file, and whoever made the socket did otherwise: told, not changed.
void warn_of_file(const config::UnixListen& entry) {
  struct stat found {};
  if (::lstat(entry.path.c_str(), &found) != 0) {
    log_warn("inherited socket has no file: nobody can connect to it by its path; restart the .socket unit",
             {{"path", entry.path}, {"reason", std::strerror(errno)}});
    return;
  }
  if (!S_ISSOCK(found.st_mode)) {
    log_warn(
        "inherited socket's file is no socket any more: nobody can connect to it by its path; restart the "
        ".socket unit",
        {{"path", entry.path}});
    return;
  }
  if ((found.st_mode & 0777) != (entry.mode & 0777))
    log_warn(
        "inherited socket has another mode than the configuration says: SocketMode in the .socket unit "
        "counts",
        {{"path", entry.path}, {"mode", mode_text(found.st_mode)}, {"configured", mode_text(entry.mode)}});
  if (entry.group.empty()) return;
  const auto group = group_id(entry.group);
  if (!group || group.value() != found.st_gid)
    log_warn(
        "inherited socket has another group than the configuration says: SocketGroup in the .socket unit "
        "counts",
        {{"path", entry.path}, {"group", group_name(found.st_gid)}, {"configured", entry.group}});
}

// Both parts of a path; the folder of a bare name is the one where the process is.
std::pair<std::string, std::string> split(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

bool is_same_socket_path(const std::string& bound, const std::string& configured) {
  if (bound == configured) return true;
  const auto [one_folder, one_name] = split(bound);
  const auto [other_folder, other_name] = split(configured);
  struct stat one {
  }, other{};
  return one_name == other_name && ::stat(one_folder.c_str(), &one) == 0 &&
         ::stat(other_folder.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

Result<InheritedSockets> InheritedSockets::adopt(int first, const std::vector<std::string>& names) {
  InheritedSockets out;
  // All are ours from here on, also if one is wrong.
  for (size_t i = 0; i < names.size(); ++i) {
    const int fd = first + static_cast<int>(i);
    std::string shown = "inherited descriptor " + std::to_string(fd);
    if (!names[i].empty()) shown += " (" + names[i] + ")";
    out.sockets_.push_back({FileDescriptor(fd), std::move(shown), ""});
  }
  for (Socket& socket : out.sockets_) {
    std::string wrong = what_is_wrong(socket.fd.get());
    if (wrong.empty() && !set_flags(socket.fd.get()))
      wrong = std::string("cannot be used: ") + std::strerror(errno);
    if (!wrong.empty())
      return Error{socket.shown + " " + wrong + ", allowed: listening stream sockets, Unix or TCP"};
    socket.shown += ", bound to " + bound_address(socket.fd.get()).shown();
  }
  return out;
}

Result<void> InheritedSockets::match(const std::vector<config::Listen>& entries) {
  for (Socket& socket : sockets_) {
    const BoundAddress bound = bound_address(socket.fd.get());
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&bound](const config::Listen& each) { return serves(bound, each); });
    if (entry == entries.end()) {
      std::string all;
      for (const config::Listen& each : entries) all += (all.empty() ? "" : ", ") + place_of(each);
      return Error{socket.shown +
                   ", is for no entry of the configuration, allowed: the addresses of listen and admin (" +
                   all + "); change the .socket unit or the configuration"};
    }
    const std::string place = place_of(*entry);
    const auto twin = std::find_if(sockets_.begin(), sockets_.end(),
                                   [&place](const Socket& each) { return each.for_place == place; });
    if (twin != sockets_.end())
      return Error{twin->shown + ", and " + socket.shown + ", are for the same entry, allowed: one"};
    socket.for_place = place;
  }
  return {};
}

FileDescriptor InheritedSockets::take(const config::Listen& entry) {
  const std::string place = place_of(entry);
  const auto found = std::find_if(sockets_.begin(), sockets_.end(),
                                  [&place](const Socket& each) { return each.for_place == place; });
  if (found == sockets_.end() || !found->fd.is_open()) return FileDescriptor();
  log_info("socket inherited", {{"address", place}, {"descriptor", found->fd.get()}});
  if (const auto* file = std::get_if<config::UnixListen>(&entry)) warn_of_file(*file);
  return std::move(found->fd);
}

}  // namespace bellhop
