// An address to connect to, of TCP or a Unix socket, and how host names become addresses.
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

  // Reads an IPv4 or IPv6 literal, with or without brackets. Gives nothing for anything else, which is a
  // name.
  static std::optional<Address> from_literal(const std::string& host, uint16_t port);
  // Precondition: `path` fits into a sockaddr_un and has no NUL in it.
  static Address from_path(const std::string& path);
  // Where a broker is; nothing when its URL has a name that must be resolved.
  static std::optional<Address> without_lookup(const config::BrokerUrl& url);
  // Every address of a resolver's answer, in its order, with `port` put in.
  static std::vector<Address> from_resolved(const addrinfo* list, uint16_t port);
};

// Begins to connect: non-blocking, close-on-exec, TCP_NODELAY. A closed descriptor is a failure, with errno.
// `connected`: whether the connection is there already; otherwise it is there, or has failed, once the
// descriptor is writable (connect_outcome).
FileDescriptor begin_connect(const Address& address, bool& connected);
// What came of a connection whose descriptor became writable: 0, or the errno of the failure.
int connect_outcome(int fd);

}  // namespace bellhop
