#include "daemon/ops/file_descriptor.h"

#include <fcntl.h>

#include <array>

#include "test/support/catch.h"

using bellhop::FileDescriptor;

namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

FileDescriptor open_something() {
  FileDescriptor fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(fd.is_open());
  return fd;
}

}  // namespace

TEST_CASE("a descriptor is closed with its owner, and only with the last one", "[file_descriptor]") {
  int number = -1;
  {
    FileDescriptor outer;
    REQUIRE_FALSE(outer.is_open());
    {
      FileDescriptor inner = open_something();
      number = inner.get();
      outer = std::move(inner);
    }
    REQUIRE(outer.get() == number);
    REQUIRE(is_open(number));
  }
  REQUIRE_FALSE(is_open(number));
}

TEST_CASE("an owner that gets another descriptor closes the one it had", "[file_descriptor]") {
  FileDescriptor first = open_something();
  FileDescriptor second = open_something();
  const std::array<int, 2> numbers{first.get(), second.get()};
  first = std::move(second);
  REQUIRE_FALSE(is_open(numbers[0]));
  REQUIRE(first.get() == numbers[1]);
}

TEST_CASE("a descriptor that was given away stays open", "[file_descriptor]") {
  int number = -1;
  {
    FileDescriptor owner = open_something();
    number = owner.release();
    REQUIRE_FALSE(owner.is_open());
  }
  REQUIRE(is_open(number));
  ::close(number);
}

TEST_CASE("closing keeps errno, and closing again does nothing", "[file_descriptor]") {
  FileDescriptor fd = open_something();
  const int number = fd.get();
  errno = ENOSPC;
  fd.close();
  REQUIRE(errno == ENOSPC);
  const FileDescriptor next = open_something();  // the kernel gives the same number again
  REQUIRE(next.get() == number);
  fd.close();
  REQUIRE(is_open(number));
}
