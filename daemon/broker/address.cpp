#include "daemon/broker/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bellhop {
namespace {

void set_port(Address& address, uint16_t port) {
  if (address.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  }
}

// A connect to a free port of this host's own ephemeral range can meet itself. Such a connection answers, but
// it is no broker.
bool is_connected_to_itself(int fd) {
  Address own, peer;  // of a Unix socket: nameless and named
  socklen_t own_size = sizeof own.storage, peer_size = sizeof peer.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own_size) != 0) return false;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer_size) != 0) return false;
  return own_size == peer_size && std::memcmp(&own.storage, &peer.storage, own_size) == 0;
}

}  // namespace

std::string Address::text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    return std::string(host) + ":" + std::to_string(ntohs(v4->sin_port));
  }
  if (family() == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  if (family() == AF_UNIX) return reinterpret_cast<const sockaddr_un*>(&storage)->sun_path;
  return host;
}

Address Address::from_path(const std::string& path) {
  Address address;
  auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path, path.data(), std::min(path.size(), sizeof local->sun_path - 1));
  address.size = sizeof(sockaddr_un);
  return address;
}

std::optional<Address> Address::from_literal(const std::string& host, uint16_t port) {
  std::string bare = host;
  if (bare.size() > 2 && bare.front() == '[' && bare.back() == ']') bare = bare.substr(1, bare.size() - 2);
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, bare.c_str(), &v4->sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, bare.c_str(), &v6->sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.size = sizeof(sockaddr_in6);
  } else {
    return std::nullopt;
  }
  set_port(address, port);
  return address;
}

std::optional<Address> Address::without_lookup(const config::BrokerUrl& url) {
  if (url.transport == config::Transport::unix_socket) return from_path(url.socket_path);
  return from_literal(url.host, url.port);
}

std::vector<Address> Address::from_resolved(const addrinfo* list, uint16_t port) {
  std::vector<Address> addresses;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    set_port(address, port);
    addresses.push_back(address);
  }
  return addresses;
}

FileDescriptor begin_connect(const Address& address, bool& connected) {
  connected = false;
  FileDescriptor fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return fd;
  const int on = 1;
  if (address.family() != AF_UNIX) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), address.get(), address.size) == 0) {
    const int outcome = connect_outcome(fd.get());
    connected = outcome == 0;
    if (connected) return fd;
    errno = outcome;
  } else if (errno == EINPROGRESS || errno == EINTR) {
    return fd;
  }
  fd.close();
  return fd;
}

int connect_outcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error == 0 && is_connected_to_itself(fd)) return ECONNREFUSED;
  return error;
}

}  // namespace bellhop
