#include "config/broker_url.h"

#include <algorithm>
#include <iterator>

#include "config/host_port.h"

namespace bellhop::config {

namespace {

struct Scheme {
  std::string_view begin;
  Transport transport;
  uint16_t port;
};
constexpr Scheme schemes[] = {{"amqp://", Transport::tcp, 5672},
                              {"amqps://", Transport::tls, 5671},
                              {"amqp+unix://", Transport::unix_socket, 0}};
constexpr size_t socket_path_bytes_max = 107;  // sockaddr_un

Error problem(const std::string& what) {
  return Error{what + ", allowed: " + broker_url_form};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return problem("has a % without two hexadecimal digits after it");
    if (high == 0 && low == 0) return problem("has a %00 in it");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

Result<void> read_credentials(std::string_view text, BrokerUrl& url) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return problem("has a user without a password");
  const Result<std::string> username = percent_decode(text.substr(0, colon));
  if (!username) return Error{username.error()};
  const Result<std::string> password = percent_decode(text.substr(colon + 1));
  if (!password) return Error{password.error()};
  if (username.value().empty()) return problem("has an empty user");
  if (password.value().empty()) return problem("has an empty password");
  url.username = username.value();
  url.password = password.value();
  return {};
}

Result<void> read_vhost(std::string_view text, BrokerUrl& url) {
  const Result<std::string> vhost = percent_decode(text);
  if (!vhost) return Error{vhost.error()};
  if (vhost.value().size() > 255) return problem("has a virtual host of more than 255 bytes");
  url.vhost = vhost.value();
  return {};
}

// `authority` is what stands before the path, without user:password.
Result<void> read_host(std::string_view authority, std::string_view path, const Scheme& scheme,
                       BrokerUrl& url) {
  const Result<HostPort> address = parse_host_port(authority);
  if (!address) return problem(address.error());
  url.host = address.value().host;
  url.port = address.value().port.value_or(scheme.port);
  if (url.port == 0) return problem("has port 0");
  if (path.size() > 1) {
    if (path.find('/', 1) != std::string_view::npos)
      return problem("has more than one / after the host (a / in a virtual host's name is written %2F)");
    if (Result<void> read = read_vhost(path.substr(1), url); !read) return read;
  }
  url.shown = std::string(scheme.begin) + show_host_port(url.host, url.port);
  if (url.vhost) url.shown += "/" + percent_encode(*url.vhost);
  return {};
}

Result<void> read_socket(std::string_view authority, std::string_view path, const Scheme& scheme,
                         BrokerUrl& url) {
  if (!authority.empty()) return problem("has something else than user:password@ before its path");
  const size_t question = path.find('?');
  const std::string_view query = question == std::string_view::npos ? "" : path.substr(question + 1);
  path = path.substr(0, question);
  const Result<std::string> socket = percent_decode(path);
  if (!socket) return Error{socket.error()};
  if (path.size() <= 1) return problem("has no path of a socket");
  if (socket.value().size() > socket_path_bytes_max) return problem("has a path of more than 107 bytes");
  url.socket_path = socket.value();
  url.shown = std::string(scheme.begin);
  for (const char c : socket.value()) url.shown += c == '/' ? "/" : percent_encode({&c, 1});
  if (question == std::string_view::npos) return {};
  constexpr std::string_view key = "vhost=";
  if (!query.starts_with(key) || query.size() == key.size() || query.find('&') != std::string_view::npos)
    return problem("has something else than ?vhost= after its path");
  if (Result<void> read = read_vhost(query.substr(key.size()), url); !read) return read;
  url.shown += "?vhost=" + percent_encode(*url.vhost);
  return {};
}

}  // namespace

Result<BrokerUrl> parse_broker_url(std::string_view text) {
  const auto* const scheme = std::find_if(std::begin(schemes), std::end(schemes), [text](const Scheme& each) {
    return text.starts_with(each.begin);
  });
  if (scheme == std::end(schemes)) return problem("is no broker's URL");
  text.remove_prefix(scheme->begin.size());
  const bool is_socket = scheme->transport == Transport::unix_socket;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f)
      return problem("has a blank or control character in it");
  }

  BrokerUrl url;
  url.transport = scheme->transport;
  const size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  const std::string_view path = text.substr(slash);
  if ((is_socket ? authority : text).find('?') != std::string_view::npos ||
      text.find('#') != std::string_view::npos)
    return problem("has a ? or # in it (in a user, password, path or vhost they are written %3F and %23)");
  const size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    if (Result<void> read = read_credentials(authority.substr(0, at), url); !read) return Error{read.error()};
    authority.remove_prefix(at + 1);
  }
  // Most likely the end of a password that has a / in it: as a vhost or path it would be shown in logs.
  if (path.find('@') != std::string_view::npos)
    return problem(
        "has an @ after its first / (in a user, password, path or vhost, @ is written %40, in all but a path "
        "/ is written %2F)");
  const Result<void> read =
      is_socket ? read_socket(authority, path, *scheme, url) : read_host(authority, path, *scheme, url);
  if (!read) return Error{read.error()};
  return url;
}

}  // namespace bellhop::config
