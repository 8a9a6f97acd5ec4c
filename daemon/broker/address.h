// An address that can be connected to, of TCP or a Unix socket, and how host names become some.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/ops/file_descriptor.h"

namespace bellhop {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  // `127.0.0.1:5672`, `[::1]:5672`, `/run/broker.sock`
  std::string text() const;

  // An IPv4 or IPv6 literal (with or without brackets); anything else is a name and gives nothing.
  static std::optional<Address> from_literal(const std::string& host, uint16_t port);
  // Precondition: not longer than a sockaddr_un has room for, and no NUL in it.
  static Address from_path(const std::string& path);
  // Where a broker is, unless its URL has a name that must be resolved.
  static std::optional<Address> without_lookup(const config::BrokerUrl& url);
  // Every address of a resolver's answer, in its order, with `port` put in.
  static std::vector<Address> from_resolved(const addrinfo* list, uint16_t port);
};

// Begins to connect: non-blocking, close-on-exec, TCP_NODELAY. A closed one says with errno why not.
// `connected` tells whether it is there already; otherwise it is once writable, see connect_outcome.
FileDescriptor begin_connect(const Address& address, bool& connected);
// After the descriptor became writable: 0, or the errno of the failure.
int connect_outcome(int fd);

}  // namespace bellhop
