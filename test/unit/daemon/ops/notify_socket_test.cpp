#include "daemon/ops/notify_socket.h"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

// Who hears: a datagram socket at `place`, which reads nothing by itself.
struct Hearer {
  FileDescriptor fd;
  explicit Hearer(const std::string& place) : fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const auto address = notify_address(place);
    REQUIRE(address);
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.value().address),
                   address.value().size) == 0);
  }
  std::string next() {
    char text[256];
    const ssize_t size = ::recv(fd.get(), text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }
};

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/bellhop-notify-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a place is a path from the root or an @name", "[notify]") {
  const auto file = notify_address("/run/systemd/notify");
  REQUIRE(file);
  CHECK(std::string(file.value().address.sun_path) == "/run/systemd/notify");
  CHECK(file.value().size == offsetof(sockaddr_un, sun_path) + 20);

  const auto name = notify_address("@bellhop");
  REQUIRE(name);
  CHECK(std::memcmp(name.value().address.sun_path, "\0bellhop", 8) == 0);
  CHECK(name.value().size == offsetof(sockaddr_un, sun_path) + 8);

  CHECK(notify_address("/" + std::string(106, 'x')));
  CHECK(notify_address("/" + std::string(107, 'x')).error() == "has 108 bytes, the system allows 107");
  for (const char* place : {"", "/", "@", "run/notify", "vsock:2:1"})
    CHECK(notify_address(place).error() == "is neither a path from the root nor an @name");
}

TEST_CASE("what is said arrives as one datagram", "[notify]") {
  Folder folder;
  const bool is_file = GENERATE(true, false);
  const std::string real = (is_file ? "" : "@") + folder.path + "/notify";
  Hearer hearer(real);
  const auto socket = NotifySocket::open(real);
  REQUIRE(socket);
  CHECK(socket.value().send("READY=1\nSTATUS=well").value());
  CHECK(socket.value().send("STOPPING=1").value());
  CHECK(hearer.next() == "READY=1\nSTATUS=well");
  CHECK(hearer.next() == "STOPPING=1");
}

TEST_CASE("nobody hears: an error, and later ones arrive when somebody does", "[notify]") {
  Folder folder;
  const auto socket = NotifySocket::open(folder.path + "/notify");
  REQUIRE(socket);
  CHECK(socket.value().send("READY=1").error() == "No such file or directory");
  Hearer hearer(folder.path + "/notify");
  CHECK(socket.value().send("STATUS=x").value());
  CHECK(hearer.next() == "STATUS=x");
}

TEST_CASE("a manager that does not read is not waited for", "[notify]") {
  Folder folder;
  Hearer hearer(folder.path + "/notify");
  const auto socket = NotifySocket::open(folder.path + "/notify");
  bool had_room = true;
  for (int i = 0; i < 100'000 && had_room; ++i) had_room = socket.value().send("WATCHDOG=1").value();
  CHECK_FALSE(had_room);
  while (!hearer.next().empty()) {
  }
  CHECK(socket.value().send("WATCHDOG=1").value());
}
