// admin: the socket that is there without a word in the file, and what may stand in it.
#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop::config;

using Lines = std::vector<std::string>;

namespace {

Loaded loaded(const std::string& yaml) {
  return load_text("broker: { url: amqp://localhost }\n" + yaml, "f");
}

std::string socket_of(const std::string& yaml) {
  const Loaded out = loaded(yaml);
  REQUIRE(out.errors == Lines{});
  CHECK(out.config.admin.is_default_socket);
  return out.config.admin.socket;
}

}  // namespace

TEST_CASE("the admin socket stands beside the first Unix listener", "[config]") {
  CHECK(socket_of("") == "/run/bellhop/admin.sock");
  CHECK(socket_of("listen: [{ unix: /a/x.sock }, { unix: /b/y.sock }]") == "/a/admin.sock");
  CHECK(socket_of("listen: [{ tcp: \"127.0.0.1:1\" }, { unix: /b/y.sock }]") == "/b/admin.sock");
  CHECK(socket_of("listen: [{ unix: x.sock }]") == "admin.sock");
}

TEST_CASE("there is none where it has no place", "[config]") {
  CHECK(socket_of("listen: [{ tcp: \"127.0.0.1:1\" }]").empty());
  CHECK(socket_of("listen: [{ unix: /a/admin.sock }]").empty());
  CHECK(socket_of("listen: [{ unix: /" + std::string(100, 'a') + "/x }]").empty());
}

TEST_CASE("the file may say where it is, and open a TCP address for looking", "[config]") {
  const Loaded out = loaded("admin: { socket: /s, tcp: \"[::1]:9419\" }");
  REQUIRE(out.errors == Lines{});
  CHECK(out.config.admin.socket == "/s");
  CHECK_FALSE(out.config.admin.is_default_socket);
  REQUIRE(out.config.admin.tcp);
  CHECK(out.config.admin.tcp->host == "::1");
  CHECK(out.config.admin.tcp->port == 9419);
  CHECK_FALSE(out.config.admin.watch);
  CHECK_FALSE(loaded("").config.admin.tcp);
}

TEST_CASE("what is wrong with admin", "[config]") {
  CHECK(loaded("admin: { socket: \"\" }").errors == Lines{"f:2:18: admin.socket: is empty, allowed: a path"});
  CHECK(
      loaded("admin: { socket: /" + std::string(107, 'a') + " }").errors ==
      Lines{
          "f:2:18: admin.socket: has 108 bytes, allowed: at most 107, which is all that the kernel takes for "
          "a socket's path"});
  CHECK(loaded("listen: [{ unix: /a }]\nadmin: { socket: /a }").errors ==
        Lines{"f:3:18: admin.socket: '/a' is a socket of `listen`, allowed: another path"});
  CHECK(loaded("admin: { tcp: localhost }").errors ==
        Lines{"f:2:15: admin.tcp: 'localhost' has no port, allowed: host:port, as in 127.0.0.1:9419 or "
              "[::1]:9419"});
  CHECK(loaded("listen: [{ tcp: \"127.0.0.1:1\" }]\nadmin: { tcp: \"127.0.0.1:1\" }").errors ==
        Lines{"f:3:15: admin.tcp: '127.0.0.1:1' is an address of `listen`, allowed: another port"});
  CHECK(loaded("admin: { port: 1 }").errors ==
        Lines{"f:2:10: admin.port: unknown key, allowed: socket, tcp, watch"});
}
