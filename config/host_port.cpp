#include "config/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "config/units.h"

namespace bellhop::config {

namespace {

bool is_host_name(std::string_view host) {
  for (const char c : host) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '-' || c == '.' || c == '_';
    if (!allowed) return false;
  }
  return !host.empty() && host.size() <= 253;
}

bool is_ipv6(std::string_view host) {
  // A zone (fe80::1%eth0) is for the resolver to judge.
  const std::string address(host.substr(0, host.find('%')));
  in6_addr parsed;
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  HostPort out;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || !is_ipv6(text.substr(1, end - 1)))
      return Error{"has no IPv6 address between [ and ]"};
    out.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const size_t colon = text.find(':');
    out.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view{} : text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos)
      return Error{"has more than one colon, an IPv6 address stands in brackets as in [::1]"};
    if (out.host.empty()) return Error{"has no host"};
    if (!is_host_name(out.host)) return Error{"has a host with characters that no host has"};
  }
  if (rest.empty()) return out;
  const Result<uint64_t> port = parse_integer(rest.substr(1));
  if (rest.front() != ':' || !port || port.value() > 65535)
    return Error{"has a port that is not a number up to 65535"};
  out.port = static_cast<uint16_t>(port.value());
  return out;
}

std::string show_host_port(const std::string& host, uint16_t port) {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return shown + ":" + std::to_string(port);
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace bellhop::config
