#include "config/host_port.h"

#include "test/support/catch.h"

using namespace bellhop::config;

TEST_CASE("host and port, the port optional", "[config]") {
  CHECK(parse_host_port("127.0.0.1:5673").value().host == "127.0.0.1");
  CHECK(parse_host_port("127.0.0.1:5673").value().port == 5673);
  CHECK(parse_host_port("[::1]:0").value().host == "::1");
  CHECK(parse_host_port("[::1]:0").value().port == 0);
  CHECK_FALSE(parse_host_port("localhost").value().port.has_value());
  for (const char* text : {"", ":1", "a:b", "a:-1", "a:70000", "[::1]5673", "[::1", "::1", "a b:1", "[]:1"}) {
    INFO(text);
    CHECK_FALSE(parse_host_port(text).ok());
  }
}

TEST_CASE("an address is shown as it is written", "[config]") {
  CHECK(show_host_port("127.0.0.1", 1) == "127.0.0.1:1");
  CHECK(show_host_port("::1", 1) == "[::1]:1");
}

TEST_CASE("loopback is what only this host reaches", "[config]") {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) CHECK(is_loopback(host));
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "rabbit", "127.0.0.1.example.org", "127.1"})
    CHECK_FALSE(is_loopback(host));
}
