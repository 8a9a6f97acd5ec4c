#include "daemon/door/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>

namespace bellhop {

std::string address_text(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(v4->sin_port));
}

namespace {

// The bytes of a Unix socket's name: a path's NUL may be one of them, or not.
std::string_view unix_name(const BoundAddress& bound) {
  constexpr size_t begin = offsetof(sockaddr_un, sun_path);
  if (bound.address.ss_family != AF_UNIX || bound.size <= begin) return {};
  return {reinterpret_cast<const sockaddr_un&>(bound.address).sun_path, bound.size - begin};
}

}  // namespace

std::optional<std::string> BoundAddress::path() const {
  const std::string_view name = unix_name(*this);
  if (name.empty() || name.front() == '\0') return {};
  return std::string(name.substr(0, name.find('\0')));
}

std::string BoundAddress::shown() const {
  if (size == 0) return "no address";
  if (address.ss_family != AF_UNIX) return "tcp:" + address_text(address);
  if (const auto file = path()) return "unix:" + *file;
  const std::string_view name = unix_name(*this);
  return name.empty() ? "no address" : "the abstract name @" + std::string(name.substr(1));
}

BoundAddress bound_address(int fd) {
  BoundAddress bound;
  bound.size = sizeof bound.address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.address), &bound.size) != 0) bound.size = 0;
  return bound;
}

Result<AddressList> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = in_brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return Error{::gai_strerror(error)};
  return AddressList(list, ::freeaddrinfo);
}

}  // namespace bellhop
