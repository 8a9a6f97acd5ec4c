#include "config/broker_url.h"

#include "config/host_port.h"

namespace bellhop::config {

namespace {

constexpr std::string_view scheme = "amqp://";

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

// `path` is what follows the `/`.
Result<void> read_vhost(std::string_view path, BrokerUrl& url) {
  if (path.empty()) return {};
  if (path.find('/') != std::string_view::npos)
    return problem("has more than one / after the host (a / in a virtual host's name is written %2F)");
  // Most likely the end of a password that has a / in it: as a vhost it would be shown in logs.
  if (path.find('@') != std::string_view::npos)
    return problem(
        "has an @ after the host (in a user, password or vhost, @ is written %40 and / is written %2F)");
  const Result<std::string> vhost = percent_decode(path);
  if (!vhost) return Error{vhost.error()};
  if (vhost.value().size() > 255) return problem("has a virtual host of more than 255 bytes");
  url.vhost = vhost.value();
  return {};
}

}  // namespace

Result<BrokerUrl> parse_broker_url(std::string_view text) {
  if (text.starts_with("amqps:") || text.starts_with("amqp+unix:"))
    return problem(std::string(text.substr(0, text.find(':') + 1)) + "// is not supported");
  if (!text.starts_with(scheme)) return problem("is no broker's URL");
  text.remove_prefix(scheme.size());
  if (text.find_first_of("?#") != std::string_view::npos)
    return problem("has a ? or # in it (in a user, password or vhost they are written %3F and %23)");
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f)
      return problem("has a blank or control character in it");
  }

  BrokerUrl url;
  const size_t slash = text.find('/');
  std::string_view authority = text.substr(0, slash);
  const size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    if (Result<void> read = read_credentials(authority.substr(0, at), url); !read) return Error{read.error()};
    authority.remove_prefix(at + 1);
  }
  const Result<HostPort> address = parse_host_port(authority);
  if (!address) return problem(address.error());
  url.host = address.value().host;
  url.port = address.value().port.value_or(5672);
  if (url.port == 0) return problem("has port 0");
  if (slash != std::string_view::npos) {
    if (Result<void> read = read_vhost(text.substr(slash + 1), url); !read) return Error{read.error()};
  }
  url.shown = std::string(scheme) + show_host_port(url.host, url.port);
  if (url.vhost) url.shown += "/" + percent_encode(*url.vhost);
  return url;
}

}  // namespace bellhop::config
