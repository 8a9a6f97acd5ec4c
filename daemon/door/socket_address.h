// Addresses of listening sockets: as text, and from text.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>

#include "proto/result.h"

namespace bellhop {

// `127.0.0.1:5672`, `[::1]:5672`.
std::string address_text(const sockaddr_storage& address);

// What a socket is bound to. A size of 0: nobody knows.
struct BoundAddress {
  sockaddr_storage address{};
  socklen_t size = 0;

  // A Unix socket's; nothing for a TCP socket, an abstract name, and a socket without any.
  std::optional<std::string> path() const;
  std::string shown() const;  // `unix:/run/x.sock`, `the abstract name @x`, `tcp:127.0.0.1:5672`
};

BoundAddress bound_address(int fd);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
// Looks a host up, with or without brackets, for listening there. Precondition of what is returned: not null.
// Error: why there is no such host.
Result<AddressList> resolve(const std::string& host, uint16_t port);

}  // namespace bellhop
