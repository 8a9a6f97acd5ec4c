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

// Errors never show the text: in a URL it may hold a password.
Result<HostPort> parse_host_port(std::string_view text);
std::string show_host_port(const std::string& host, uint16_t port);

// 127.0.0.0/8, ::1 and localhost. Another name is not looked up: it counts as an address that others reach.
bool is_loopback(const std::string& host);

}  // namespace bellhop::config
