#include "daemon/broker/blocking_connect.h"

#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace bellhop {
namespace {

using Clock = std::chrono::steady_clock;

// 0 once `fd` has one of `events`; ECANCELED once `wake_fd` is readable; ETIMEDOUT.
int wait_for(int fd, short events, int wake_fd, Clock::time_point deadline) {
  pollfd waits[2] = {{fd, events, 0}, {wake_fd, POLLIN, 0}};
  int ready;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    ready = ::poll(waits, 2, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
  } while (ready < 0 && errno == EINTR);
  if ((waits[1].revents & POLLIN) != 0) return ECANCELED;
  return ready > 0 ? 0 : ETIMEDOUT;
}

Result<std::vector<Address>> addresses_of(const config::BrokerUrl& url) {
  if (const auto known = Address::without_lookup(url)) return std::vector<Address>{*known};
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(url.host.c_str(), nullptr, &hints, &list); error != 0)
    return Error{std::string("cannot resolve the name: ") + ::gai_strerror(error)};
  std::vector<Address> addresses = Address::from_resolved(list, url.port);
  ::freeaddrinfo(list);
  if (addresses.empty()) return Error{"the name has no IP address"};
  return addresses;
}

// Empty: done.
std::string handshake(TlsStream& tls, int fd, int wake_fd, Clock::time_point deadline) {
  while (true) {
    const TlsStream::Step step = tls.handshake(fd);
    if (step == TlsStream::Step::done) return "";
    if (step == TlsStream::Step::failed) return tls.error();
    const auto events = static_cast<short>(POLLIN | (tls.has_unsent() ? POLLOUT : 0));
    if (const int error = wait_for(fd, events, wake_fd, deadline); error != 0)
      return std::string("the TLS handshake did not end: ") + std::strerror(error);
  }
}

}  // namespace

Result<Connected> connect_blocking(const config::BrokerUrl& url, std::shared_ptr<const TlsContext> tls,
                                   int wake_fd, uint32_t timeout_ms) {
  const auto addresses = addresses_of(url);
  if (!addresses) return Error{addresses.error()};
  std::string reason;
  for (const Address& address : addresses.value()) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    bool connected = false;
    Connected out{begin_connect(address, connected), &url, nullptr};
    const int fd = out.fd.get();
    if (!out.fd.is_open()) {
      reason = address.text() + ": " + std::strerror(errno);
      continue;
    }
    int error = connected ? 0 : wait_for(fd, POLLOUT, wake_fd, deadline);
    if (error == 0 && !connected) error = connect_outcome(fd);
    std::string problem = error == 0 ? "" : std::strerror(error);
    if (problem.empty() && url.transport == config::Transport::tls) {
      out.tls = std::make_unique<TlsStream>(std::move(tls), url);
      problem = handshake(*out.tls, fd, wake_fd, deadline);
    }
    if (problem.empty()) return out;
    reason = address.text() + ": " + problem;
    if (wait_for(wake_fd, POLLIN, wake_fd, Clock::now()) == ECANCELED) break;
  }
  return Error{reason};
}

}  // namespace bellhop
