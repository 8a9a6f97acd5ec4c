#include "daemon/door/inherited_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <filesystem>

#include "daemon/door/listener.h"
#include "daemon/door/socket_address.h"
#include "test/support/catch.h"
#include "test/support/sockets.h"
#include "test/support/test_loop.h"

using namespace bellhop;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/bellhop-inherited-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

// A socket that somebody else made: `name` as the kernel takes it, a NUL first for an abstract one.
int unix_socket(const std::string& name, int type = SOCK_STREAM, bool listens = true) {
  const int fd = ::socket(AF_UNIX, type, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == 0 ? 0 : 1));
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  if (listens) REQUIRE(::listen(fd, 5) == 0);
  return fd;
}

int tcp_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  else
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = IN6ADDR_LOOPBACK_INIT;
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(fd, 5) == 0);
  return fd;
}

uint16_t port_of(int fd) {
  const BoundAddress bound = bound_address(fd);
  return ntohs(bound.address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(bound.address).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(bound.address).sin6_port);
}

config::Listen file(const std::string& path) {
  config::UnixListen listen;
  listen.path = path;
  return listen;
}

config::Listen tcp(const std::string& host, uint16_t port) {
  config::TcpListen listen;
  listen.host = host;
  listen.port = port;
  return listen;
}

bool has_ipv6() {
  const FileDescriptor fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  return fd.is_open() && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Of descriptors that need not be neighbours.
InheritedSockets adopt(int fd, const std::string& name = "") {
  auto adopted = InheritedSockets::adopt(fd, {name});
  REQUIRE(adopted);
  return std::move(adopted.value());
}

std::string refusal(int fd) {
  const auto adopted = InheritedSockets::adopt(fd, {"x.socket"});
  return adopted ? "" : adopted.error();
}

}  // namespace

TEST_CASE("an inherited socket is non-blocking and close-on-exec from then on", "[inherited]") {
  Folder folder;
  const int fd = unix_socket(folder.path + "/s");
  const InheritedSockets sockets = adopt(fd);
  CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("what clients cannot connect to is refused, and closed", "[inherited]") {
  Folder folder;
  const std::string allowed = ", allowed: listening stream sockets, Unix or TCP";
  int fd = -1;
  std::string wrong;
  SECTION("nothing") {
    fd = ::dup(0);
    ::close(fd);
    wrong = "is not open";
  }
  SECTION("a file") {
    fd = ::open("/dev/null", O_RDONLY);
    wrong = "is no socket";
  }
  SECTION("datagrams") {
    fd = unix_socket(folder.path + "/s", SOCK_DGRAM, false);
    wrong = "is no stream socket";
  }
  SECTION("packets") {
    fd = unix_socket(folder.path + "/s", SOCK_SEQPACKET);
    wrong = "is no stream socket";
  }
  SECTION("a socket that nobody listens on") {
    fd = unix_socket(folder.path + "/s", SOCK_STREAM, false);
    wrong = "does not listen (Accept=yes hands over connections)";
  }
  SECTION("a connection") {
    test::SocketPair pair;
    fd = pair.release_a().release();
    wrong = "does not listen (Accept=yes hands over connections)";
  }
  CHECK(refusal(fd) == "inherited descriptor " + std::to_string(fd) + " (x.socket) " + wrong + allowed);
  CHECK(::fcntl(fd, F_GETFD) == -1);
}

TEST_CASE("a Unix socket is for the entry with its path, however its folder is written", "[inherited]") {
  Folder folder;
  const int fd = unix_socket(folder.path + "/s");
  InheritedSockets sockets = adopt(fd);
  std::string written = folder.path + "/s";
  SECTION("as it is") {}
  SECTION("by a link to the folder") {
    std::filesystem::create_directory_symlink(folder.path, folder.path + "/link");
    written = folder.path + "/link/s";
  }
  SECTION("in a roundabout way") {
    written = folder.path + "/../" + folder.path.substr(5) + "//s";
  }
  SECTION("from where the process is") {
    written = std::filesystem::relative(folder.path).string() + "/s";
    REQUIRE(written.front() == '.');
  }
  const config::Listen other = file(folder.path + "/other"), own = file(written);
  REQUIRE(sockets.match({other, tcp("127.0.0.1", 0), own}));
  CHECK_FALSE(sockets.take(other).is_open());
  CHECK(sockets.take(own).get() == fd);
  CHECK_FALSE(sockets.take(own).is_open());
}

TEST_CASE("a TCP socket is for the entry with its address and port", "[inherited]") {
  const int family = GENERATE(AF_INET, AF_INET6);
  if (family == AF_INET6 && !has_ipv6()) return;
  const std::string host = family == AF_INET ? "127.0.0.1" : "::1";
  const int fd = tcp_socket(family);
  const uint16_t port = port_of(fd);
  InheritedSockets sockets = adopt(fd);
  SECTION("as a number") {
    REQUIRE(sockets.match({tcp(family == AF_INET ? "::1" : "127.0.0.1", port), tcp(host, port)}));
    CHECK(sockets.take(tcp(host, port)).get() == fd);
  }
  SECTION("another port, another address, and any port, are not its own") {
    const auto matched = sockets.match(
        {tcp(host, static_cast<uint16_t>(port ^ 1)), tcp("0.0.0.0", port), tcp(host, 0), file("/run/s")});
    REQUIRE_FALSE(matched);
    const std::string shown = (family == AF_INET ? host : "[" + host + "]") + ":";
    CHECK(matched.error() ==
          "inherited descriptor " + std::to_string(fd) + ", bound to tcp:" + shown + std::to_string(port) +
              ", is for no entry of the configuration, allowed: the addresses of listen and admin (tcp:" +
              shown + std::to_string(port ^ 1) + ", tcp:0.0.0.0:" + std::to_string(port) + ", tcp:" + shown +
              "0, unix:/run/s); change the .socket unit or the configuration");
  }
}

TEST_CASE("an abstract name is no path, and no entry is for it", "[inherited]") {
  const std::string name = "bellhop-test-" + std::to_string(::getpid());
  InheritedSockets sockets = adopt(unix_socket('\0' + name), "x.socket");
  const auto matched = sockets.match({file("@" + name), file(name)});
  REQUIRE_FALSE(matched);
  CHECK(matched.error().find("(x.socket), bound to the abstract name @" + name + ", is for no entry") !=
        std::string::npos);
}

TEST_CASE("one entry takes one socket", "[inherited]") {
  Folder folder;
  const int first = unix_socket(folder.path + "/s");
  const int second = ::dup(first);
  if (second != first + 1) {  // neighbours are what is inherited
    ::dup2(first, first + 1);
    ::close(second);
  }
  auto adopted = InheritedSockets::adopt(first, {"a", "b"});
  REQUIRE(adopted);
  const auto matched = adopted.value().match({file(folder.path + "/s")});
  REQUIRE_FALSE(matched);
  CHECK(matched.error().find("(a), bound to unix:" + folder.path + "/s, and ") != std::string::npos);
  CHECK(matched.error().find("are for the same entry, allowed: one") != std::string::npos);
}

TEST_CASE("a listener serves an inherited socket and leaves its file alone", "[inherited]") {
  Folder folder;
  const std::string path = folder.path + "/s";
  const int fd = unix_socket(path);
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  struct stat before {
  }, after{};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);  // there before the listener is
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  // A folder in which nothing can be made or locked is no hindrance (but to root).
  REQUIRE(::chmod(folder.path.c_str(), 0500) == 0);

  test::TestLoop loop;
  InheritedSockets sockets = adopt(fd);
  const std::vector<config::Listen> listens{file(path)};
  REQUIRE(sockets.match(listens));
  size_t accepted = 0;
  auto listener = Listener::open(loop.get(), listens, sockets, [&accepted](Accepted) { ++accepted; });
  REQUIRE(listener);
  CHECK(listener.value()->addresses() == std::vector<std::string>{"unix:" + path});
  REQUIRE(loop.run_until([&accepted] { return accepted == 1; }));
  listener.value()->close();
  REQUIRE(::stat(path.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK((after.st_mode & 0777) == 0604);
  ::close(client);
}
