// Small sockets for tests: a connected pair, and a TCP port that listens or refuses.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ops/file_descriptor.h"
#include "proto/bytes.h"

namespace bellhop::test {

// Two ends of a non-blocking Unix stream. release_a() gives one end away.
struct SocketPair {
  int a = -1, b = -1;
  SocketPair() {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    a = both[0];
    b = both[1];
  }
  ~SocketPair() {
    close_a();
    close_b();
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  void close_a() {
    if (a >= 0) ::close(std::exchange(a, -1));
  }
  void close_b() {
    if (b >= 0) ::close(std::exchange(b, -1));
  }
  FileDescriptor release_a() { return FileDescriptor(std::exchange(a, -1)); }
};

inline void set_send_buffer(int fd, int bytes) {
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

// What is there now, at most `bytes_max`. Sets `ended` at the end of the stream.
inline Buffer read_some(int fd, size_t bytes_max, bool* ended = nullptr) {
  Buffer got(bytes_max);
  const ssize_t count = ::recv(fd, got.data(), got.size(), MSG_DONTWAIT);
  if (ended != nullptr) *ended = count == 0 || (count < 0 && errno != EAGAIN);
  got.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return got;
}

// A loopback TCP port: listening, or only bound, so that connecting to it is refused and nobody else can take
// it.
struct TcpPort {
  int fd = -1;
  uint16_t number = 0;
  explicit TcpPort(bool listening) {
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    if (listening && ::listen(fd, 16) != 0) std::abort();
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    number = ntohs(address.sin_port);
  }
  ~TcpPort() { ::close(fd); }
  TcpPort(const TcpPort&) = delete;
  TcpPort& operator=(const TcpPort&) = delete;
};

// A port that answers nothing, as a host behind a dropping firewall does: its backlog is full, so the kernel
// drops what else comes.
struct SilentPort : TcpPort {
  std::vector<int> fillers;
  SilentPort() : TcpPort(false) {
    ::listen(fd, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(number);
    int answered = 1;
    while (answered == 1 && fillers.size() < 64) {
      fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      ::connect(fillers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
      pollfd waiting{fillers.back(), POLLOUT, 0};
      answered = ::poll(&waiting, 1, 100);
    }
  }
  ~SilentPort() {
    for (const int each : fillers) ::close(each);
  }
};

}  // namespace bellhop::test
