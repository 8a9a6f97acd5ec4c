#include "config/broker_url.h"

#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

BrokerUrl parsed(const char* text) {
  INFO(text);
  const auto url = parse_broker_url(text);
  REQUIRE(url.ok());
  return url.value();
}

std::string refused(const std::string& text) {
  INFO(text);
  const auto url = parse_broker_url(text);
  REQUIRE_FALSE(url.ok());
  const std::string allowed = std::string(", allowed: ") + broker_url_form;
  REQUIRE(url.error().ends_with(allowed));
  return url.error().substr(0, url.error().size() - allowed.size());
}

}  // namespace

TEST_CASE("a URL's parts, with the standard port", "[config]") {
  const BrokerUrl plain = parsed("amqp://rabbit");
  CHECK(plain.host == "rabbit");
  CHECK(plain.port == 5672);
  CHECK(plain.username.empty());
  CHECK_FALSE(plain.vhost.has_value());
  CHECK(plain.shown == "amqp://rabbit:5672");

  const BrokerUrl full = parsed("amqp://app:p%40s%2Fs:%25w@10.0.0.1:5673/pr%2Fod");
  CHECK(full.host == "10.0.0.1");
  CHECK(full.port == 5673);
  CHECK(full.username == "app");
  CHECK(full.password == "p@s/s:%w");
  CHECK(full.vhost == "pr/od");
  CHECK(full.shown == "amqp://10.0.0.1:5673/pr%2Fod");

  CHECK(parsed("amqp://u:p@ss@rabbit").password == "p@ss");
}

TEST_CASE("a trailing slash names no virtual host, %2F names the default one", "[config]") {
  CHECK_FALSE(parsed("amqp://rabbit/").vhost.has_value());
  CHECK_FALSE(parsed("amqp://rabbit:5672/").vhost.has_value());
  CHECK(parsed("amqp://rabbit/%2f").vhost == "/");
  CHECK(parsed("amqp://rabbit/%2F").vhost == "/");
}

TEST_CASE("amqps is TLS, with a standard port of its own", "[config]") {
  CHECK(parsed("amqp://rabbit").transport == Transport::tcp);
  const BrokerUrl plain = parsed("amqps://rabbit");
  CHECK(plain.transport == Transport::tls);
  CHECK(plain.port == 5671);
  CHECK(plain.shown == "amqps://rabbit:5671");
  const BrokerUrl full = parsed("amqps://app:pw@[::1]:5673/prod");
  CHECK(full.host == "::1");
  CHECK(full.port == 5673);
  CHECK(full.username == "app");
  CHECK(full.vhost == "prod");
  CHECK(full.shown == "amqps://[::1]:5673/prod");
}

TEST_CASE("amqp+unix has a path where the host would be, and the vhost behind it", "[config]") {
  const BrokerUrl plain = parsed("amqp+unix:///run/rabbitmq/amqp.sock");
  CHECK(plain.transport == Transport::unix_socket);
  CHECK(plain.socket_path == "/run/rabbitmq/amqp.sock");
  CHECK(plain.host.empty());
  CHECK_FALSE(plain.vhost.has_value());
  CHECK(plain.shown == "amqp+unix:///run/rabbitmq/amqp.sock");
  const BrokerUrl full = parsed("amqp+unix://app:p%40%2Fw@/run/a%20b%3F%40.sock?vhost=pr%2Fod");
  CHECK(full.username == "app");
  CHECK(full.password == "p@/w");
  CHECK(full.socket_path == "/run/a b?@.sock");
  CHECK(full.vhost == "pr/od");
  CHECK(full.shown == "amqp+unix:///run/a%20b%3F%40.sock?vhost=pr%2Fod");
  CHECK(parsed("amqp+unix:///s?vhost=/").vhost == "/");
  CHECK(parsed(("amqp+unix:///" + std::string(106, 'x')).c_str()).socket_path.size() == 107);

  CHECK(refused("amqp+unix://"
                "/" +
                std::string(107, 'x')) == "has a path of more than 107 bytes");
  CHECK(refused("amqp+unix://") == "has no path of a socket");
  CHECK(refused("amqp+unix:///") == "has no path of a socket");
  CHECK(refused("amqp+unix://u:p@") == "has no path of a socket");
  CHECK(refused("amqp+unix://run/s") == "has something else than user:password@ before its path");
  CHECK(refused("amqp+unix://u:p@host/run/s") == "has something else than user:password@ before its path");
  CHECK(refused("amqp+unix:///run/%00s") == "has a %00 in it");
  for (const char* query : {"", "x", "vhost", "vhost=", "x=y", "vhost=a&x=y"})
    CHECK(refused("amqp+unix:///run/s?" + std::string(query)) ==
          "has something else than ?vhost= after its path");
  CHECK(refused("amqp+unix:///run/s?vhost=" + std::string(256, 'v')) ==
        "has a virtual host of more than 255 bytes");
  for (const char* text : {"amqp+unix:///run/s#x", "amqp+unix://u:p?x@/run/s"})
    CHECK(refused(text) ==
          "has a ? or # in it (in a user, password, path or vhost they are written %3F and %23)");
}

TEST_CASE("an IPv6 address stands in brackets", "[config]") {
  CHECK(parsed("amqp://[::1]").host == "::1");
  CHECK(parsed("amqp://[::1]").port == 5672);
  CHECK(parsed("amqp://u:p@[fe80::1%eth0]:5673/v").host == "fe80::1%eth0");
  CHECK(parsed("amqp://u:p@[::1]:5673/v").shown == "amqp://[::1]:5673/v");
  CHECK(refused("amqp://::1") == "has more than one colon, an IPv6 address stands in brackets as in [::1]");
  CHECK(refused("amqp://[::1") == "has no IPv6 address between [ and ]");
  CHECK(refused("amqp://[rabbit]") == "has no IPv6 address between [ and ]");
}

TEST_CASE("what a URL must not have", "[config]") {
  CHECK(refused("http://rabbit") == "is no broker's URL");
  CHECK(refused("rabbit:5672") == "is no broker's URL");
  CHECK(refused("") == "is no broker's URL");
  CHECK(refused("amqp://") == "has no host");
  CHECK(refused("amqp:///vhost") == "has no host");
  CHECK(refused("amqp://u:p@") == "has no host");
  CHECK(refused("amqp://:5672") == "has no host");
  CHECK(refused("amqp://rab*bit") == "has a host with characters that no host has");
  CHECK(refused("amqp://rabbit:") == "has a port that is not a number up to 65535");
  CHECK(refused("amqp://rabbit:x") == "has a port that is not a number up to 65535");
  CHECK(refused("amqp://rabbit:65536") == "has a port that is not a number up to 65535");
  CHECK(refused("amqp://rabbit:0") == "has port 0");
  CHECK(refused("amqp://rabbit?heartbeat=1") ==
        "has a ? or # in it (in a user, password, path or vhost they are written %3F and %23)");
  CHECK(refused("amqp://rabbit/a/b") ==
        "has more than one / after the host (a / in a virtual host's name is written %2F)");
  CHECK(refused("amqp://rabbit/%2") == "has a % without two hexadecimal digits after it");
  CHECK(refused("amqp://rabbit/%zz") == "has a % without two hexadecimal digits after it");
  CHECK(refused("amqp://rabbit/%00") == "has a %00 in it");
  CHECK(refused("amqp://rab bit") == "has a blank or control character in it");
  CHECK(refused("amqp://rabbit/" + std::string(256, 'v')) == "has a virtual host of more than 255 bytes");
  CHECK(refused("amqp://app@rabbit") == "has a user without a password");
  CHECK(refused("amqp://app:@rabbit") == "has an empty password");
  CHECK(refused("amqp://:pw@rabbit") == "has an empty user");
}

TEST_CASE("no refusal shows a password, however it is mistyped", "[config]") {
  for (const char* text :
       {"amqp://app:hunter2/@rabbit", "amqp://app:hun#ter2@rabbit", "amqp://app:hunter2%@rabbit",
        "app:hunter2@rabbit", "amqp//app:hunter2@rabbit", "hunter2://rabbit", "amqp://app:12/hunter2@rabbit",
        "amqp://app:hunter2", "amqp://hunter2@rabbit", "amqp://app:hunter2@rabbit:port",
        "amqps://app:hunter2/@rabbit", "amqps://hunter2@rabbit", "amqp+unix://app:hunter2/@/run/s",
        "amqp+unix://app:hun/hunter2@/run/s", "amqp+unix://hunter2@/run/s", "amqp+unix://app:hunter2",
        "amqp+unix://app:x@/run/s?password=hunter2", "amqp+unix://app:hunter2?x@/run/s"}) {
    INFO(text);
    const auto url = parse_broker_url(text);
    REQUIRE_FALSE(url.ok());
    CHECK(url.error().find("hunter2") == std::string::npos);
  }
}
