#include "daemon/door/listener.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "daemon/door/folder_lock.h"
#include "test/support/catch.h"
#include "test/support/sockets.h"
#include "test/support/test_loop.h"

using namespace bellhop;
using bellhop::test::TestLoop;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/bellhop-listener-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

int connect_unix(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

int connect_tcp(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

bool was_closed(int fd) {
  bool ended = false;
  test::read_some(fd, 1, &ended);
  return ended;
}

struct Rig {
  TestLoop loop;
  Folder folder;
  std::vector<config::Listen> listens;
  InheritedSockets inherited;
  std::unique_ptr<Listener> listener;
  std::vector<Accepted> accepted;

  std::string path() const { return folder.path + "/bellhop.sock"; }
  config::UnixListen unix_listen() const {
    config::UnixListen listen;
    listen.path = path();
    return listen;
  }
  std::string open() {
    auto opened = Listener::open(loop.get(), listens, inherited,
                                 [this](Accepted one) { accepted.push_back(std::move(one)); });
    if (!opened) return opened.error();
    listener = std::move(opened.value());
    return "";
  }
};

}  // namespace

TEST_CASE("a Unix socket accepts, with its mode and the peer's credentials", "[listener]") {
  Rig rig;
  config::UnixListen listen = rig.unix_listen();
  listen.mode = 0620;
  rig.listens = {listen};
  REQUIRE(rig.open() == "");
  struct stat found {};
  REQUIRE(::stat(rig.path().c_str(), &found) == 0);
  REQUIRE((found.st_mode & 07777) == 0620);
  REQUIRE(rig.listener->addresses() == std::vector<std::string>{"unix:" + rig.path()});

  const int fd = connect_unix(rig.path());
  REQUIRE(rig.loop.run_until([&] { return rig.accepted.size() == 1; }));
  const Accepted& one = rig.accepted[0];
  REQUIRE(one.tcp == nullptr);
  REQUIRE(one.peer == "unix uid=" + std::to_string(::getuid()) + " gid=" + std::to_string(::getgid()) +
                          " pid=" + std::to_string(::getpid()));
  REQUIRE((::fcntl(one.fd.get(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE((::fcntl(one.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  ::close(fd);
}

TEST_CASE("a TCP listener on port 0 says which port it got", "[listener]") {
  Rig rig;
  config::TcpListen listen;
  listen.host = "127.0.0.1";
  rig.listens = {listen};
  REQUIRE(rig.open() == "");
  REQUIRE(rig.listener->addresses().size() == 1);
  const std::string address = rig.listener->addresses()[0], host = "tcp:127.0.0.1:";
  REQUIRE(address.rfind(host, 0) == 0);
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(host.size())));
  REQUIRE(port != 0);

  const int fd = connect_tcp(port);
  REQUIRE(rig.loop.run_until([&] { return rig.accepted.size() == 1; }));
  REQUIRE(rig.accepted[0].tcp == std::get_if<config::TcpListen>(&rig.listens[0]));
  REQUIRE(rig.accepted[0].peer.rfind("tcp 127.0.0.1:", 0) == 0);
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ::getsockopt(rig.accepted[0].fd.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
  REQUIRE(no_delay != 0);
  ::close(fd);
}

TEST_CASE("a peer is admitted by its uid or its gid, otherwise closed", "[listener]") {
  Rig rig;
  config::UnixListen listen = rig.unix_listen();
  bool admitted = true;
  SECTION("by uid") {
    listen.allow_uids = {7, ::getuid()};
    listen.allow_gids = {::getgid() + 1};
  }
  SECTION("by gid") {
    listen.allow_uids = {::getuid() + 1};
    listen.allow_gids = {::getgid()};
  }
  SECTION("by neither") {
    listen.allow_uids = {::getuid() + 1};
    listen.allow_gids = {::getgid() + 1};
    admitted = false;
  }
  SECTION("only uids are listed, and not this one") {
    listen.allow_uids = {::getuid() + 1};
    admitted = false;
  }
  rig.listens = {listen};
  REQUIRE(rig.open() == "");
  const int fd = connect_unix(rig.path());
  REQUIRE(rig.loop.run_until([&] { return rig.accepted.size() == 1 || was_closed(fd); }));
  REQUIRE(rig.accepted.size() == (admitted ? 1 : 0));
  ::close(fd);
}

TEST_CASE("a stale socket is replaced", "[listener]") {
  Rig rig;
  rig.listens = {rig.unix_listen()};
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, rig.path().data(), rig.path().size());
  REQUIRE(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(dead);

  REQUIRE(rig.open() == "");
  const int fd = connect_unix(rig.path());
  REQUIRE(rig.loop.run_until([&] { return rig.accepted.size() == 1; }));
  ::close(fd);
}

TEST_CASE("a live socket is refused and goes on", "[listener]") {
  Rig first, second;
  first.listens = {first.unix_listen()};
  REQUIRE(first.open() == "");
  second.listens = first.listens;
  REQUIRE(second.open() ==
          "listen: unix: " + first.path() + ": another process listens there; end it or choose another path");
  REQUIRE(std::filesystem::exists(first.path()));
}

TEST_CASE("what cannot be bound is explained", "[listener]") {
  Rig rig;
  config::UnixListen listen = rig.unix_listen();
  SECTION("a path that is too long") {
    listen.path = rig.folder.path + "/" + std::string(120, 'x');
    rig.listens = {listen};
    REQUIRE(rig.open() == "listen: unix: " + listen.path + ": the path has " +
                              std::to_string(listen.path.size()) + " bytes, the system allows 107");
  }
  SECTION("a file that is no socket, which stays") {
    std::ofstream(rig.path()) << "precious";
    rig.listens = {listen};
    REQUIRE(rig.open().find("is not a socket") != std::string::npos);
    REQUIRE(std::filesystem::file_size(rig.path()) == 8);
  }
  SECTION("a symbolic link, which is not followed") {
    std::filesystem::create_symlink(rig.folder.path + "/elsewhere", rig.path());
    rig.listens = {listen};
    REQUIRE(rig.open().find("is not a socket") != std::string::npos);
  }
  SECTION("a folder that is not there") {
    listen.path = rig.folder.path + "/none/bellhop.sock";
    rig.listens = {listen};
    REQUIRE(rig.open() == "listen: unix: " + listen.path +
                              ": cannot bind: No such file or directory; create the socket's folder, "
                              "writable for bellhop's user");
  }
  SECTION("an unknown group, and nothing is left behind") {
    listen.group = "no-such-group";
    rig.listens = {listen};
    REQUIRE(rig.open() == "listen: group: this host has no group 'no-such-group'");
    REQUIRE_FALSE(std::filesystem::exists(rig.path()));
  }
  SECTION("a port that is taken, and the listener before it is gone again") {
    test::TcpPort taken(true);
    config::TcpListen tcp;
    tcp.host = "127.0.0.1";
    tcp.port = taken.number;
    rig.listens = {listen, tcp};
    REQUIRE(rig.open() == "listen: tcp: 127.0.0.1:" + std::to_string(taken.number) +
                              ": cannot bind: Address already in use; end the process that listens there, or "
                              "choose another port");
    REQUIRE_FALSE(std::filesystem::exists(rig.path()));
  }
}

TEST_CASE("the group is set", "[listener]") {
  Rig rig;
  config::UnixListen listen = rig.unix_listen();
  listen.group = std::to_string(::getegid());
  rig.listens = {listen};
  REQUIRE(rig.open() == "");
  struct stat found {};
  REQUIRE(::stat(rig.path().c_str(), &found) == 0);
  REQUIRE(found.st_gid == ::getegid());
}

TEST_CASE("closing removes the socket file only while it is ours", "[listener]") {
  Rig rig;
  rig.listens = {rig.unix_listen()};
  REQUIRE(rig.open() == "");
  SECTION("ours") {
    rig.listener->close();
    REQUIRE_FALSE(std::filesystem::exists(rig.path()));
    rig.listener->close();
  }
  SECTION("replaced by another one's") {
    ::unlink(rig.path().c_str());
    Rig other;
    other.listens = rig.listens;
    REQUIRE(other.open() == "");
    rig.listener->close();
    const int fd = connect_unix(rig.path());
    REQUIRE(other.loop.run_until([&] { return other.accepted.size() == 1; }));
    ::close(fd);
  }
}

TEST_CASE("the listener may be destroyed by what it calls", "[listener]") {
  Rig rig;
  rig.listens = {rig.unix_listen()};
  int calls = 0;
  rig.listener =
      std::move(Listener::open(rig.loop.get(), rig.listens, rig.inherited, [&rig, &calls](Accepted) {
                  ++calls;
                  rig.listener.reset();
                }).value());
  const int one = connect_unix(rig.path()), two = connect_unix(rig.path());
  REQUIRE(rig.loop.run_until([&] { return calls == 1 && was_closed(two); }));
  REQUIRE(calls == 1);
  ::close(one);
  ::close(two);
}

TEST_CASE("without descriptors a peer is turned away, and later ones are accepted again", "[listener]") {
  Rig rig;
  rig.listens = {rig.unix_listen()};
  REQUIRE(rig.open() == "");
  const int turned_away = connect_unix(rig.path());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int probe = ::dup(turned_away);  // the lowest free number: nothing at or above it can be opened
  ::close(probe);
  const rlimit low{static_cast<rlim_t>(probe), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  const bool closed = rig.loop.run_until([turned_away] { return was_closed(turned_away); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(closed);
  REQUIRE(rig.accepted.empty());

  const int fd = connect_unix(rig.path());
  REQUIRE(rig.loop.run_until([&] { return rig.accepted.size() == 1; }));
  ::close(fd);
  ::close(turned_away);
}

TEST_CASE("of several that start on one stale socket only one looks and binds at a time", "[listener]") {
  Folder folder;
  const std::string path = folder.path + "/bellhop.sock";
  auto held = std::make_optional(FolderLock::of(path));
  REQUIRE(held->ok());
  std::atomic<bool> has_lock{false};
  std::thread other([&] {
    const Result<FolderLock> lock = FolderLock::of(path);
    has_lock = lock.ok();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(has_lock);
  held.reset();
  other.join();
  REQUIRE(has_lock);
  REQUIRE(std::filesystem::is_empty(folder.path));  // and nothing stays behind
}

TEST_CASE("a folder that cannot be locked is used all the same", "[listener]") {
  REQUIRE(FolderLock::of("/no/such/folder/bellhop.sock").ok());
}
