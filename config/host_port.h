// `host:port` and `[::1]:port`, as listeners and broker URLs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/result.h"

namespace bellhop::config {

struct HostPort {
  std::string host;  // without brackets
  std::optional<uint16_t> port;
};

// Errors never show the text, because a URL may hold a password.
Result<HostPort> parse_host_port(std::string_view text);
std::string show_host_port(const std::string& host, uint16_t port);

// Whether `host` is in 127.0.0.0/8, ::1 or localhost. It looks up no other name: that counts as an address
// that others reach.
bool is_loopback(const std::string& host);

}  // namespace bellhop::config
