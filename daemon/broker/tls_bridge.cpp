#include "daemon/broker/tls_bridge.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace bellhop {
namespace {

constexpr size_t read_bytes = 16 * 1024;
constexpr int last_send_ms = 2000;

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Result<std::unique_ptr<TlsBridge>> TlsBridge::open(FileDescriptor broker, std::unique_ptr<TlsStream> tls) {
  std::unique_ptr<TlsBridge> bridge(new TlsBridge(std::move(broker), std::move(tls)));
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
    return Error{"cannot make a pair of sockets"};
  bridge->near_ = FileDescriptor(pair[0]);
  bridge->far_ = FileDescriptor(pair[1]);
  try {
    bridge->thread_ = std::thread(&TlsBridge::carry, bridge.get());
  } catch (const std::system_error& error) {
    return Error{std::string("cannot start a thread: ") + error.what()};
  }
  return bridge;
}

TlsBridge::~TlsBridge() {
  far_.close();
  if (near_.is_open()) ::shutdown(near_.get(), SHUT_RD);
  if (thread_.joinable()) thread_.join();
}

FileDescriptor TlsBridge::take_plain_end() {
  return std::move(far_);
}

// --- the thread ---

void TlsBridge::carry() {
  bool open = true;
  while (open) {
    const bool up_waits = !up_.empty() || tls_->has_unsent();
    pollfd waits[2] = {{near_.get(), 0, 0}, {broker_.get(), 0, 0}};
    if (!near_ended_ && !up_waits) waits[0].events |= POLLIN;
    if (!down_.empty()) waits[0].events |= POLLOUT;
    if (down_.empty()) waits[1].events |= POLLIN;
    if (up_waits) waits[1].events |= POLLOUT;
    // A hang-up would wake poll again and again, though nothing can be done about it now.
    if (near_ended_ || (near_hung_up_ && up_waits)) waits[0].fd = -1;
    const bool is_last = near_ended_ || near_hung_up_;
    const bool at_once = down_.empty() && tls_->has_unread();
    const int ready = ::poll(waits, 2, at_once ? 0 : is_last ? last_send_ms : -1);
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0 && is_last && !at_once) break;
    if ((waits[0].revents & (POLLHUP | POLLERR)) != 0) near_hung_up_ = true;
    open = carry_up() && carry_down();
  }
  tls_->end(broker_.get());
  ::shutdown(broker_.get(), SHUT_WR);
  ::shutdown(near_.get(), SHUT_RDWR);
}

// False: over. What came before the near end's end still goes out.
bool TlsBridge::carry_up() {
  uint8_t bytes[read_bytes];
  if (!near_ended_ && up_.empty() && !tls_->has_unsent()) {
    const ssize_t received = ::recv(near_.get(), bytes, sizeof bytes, 0);
    if (received > 0) up_.append({bytes, static_cast<size_t>(received)});
    near_ended_ = received == 0 || (received < 0 && !would_block());
  }
  if (tls_->flush(broker_.get(), up_) < 0) return false;
  return !near_ended_ || !up_.empty() || tls_->has_unsent();
}

bool TlsBridge::carry_down() {
  uint8_t bytes[read_bytes];
  if (down_.empty()) {
    const ssize_t received = tls_->receive(broker_.get(), bytes, sizeof bytes);
    if (received == 0 || (received < 0 && !would_block())) return false;
    if (received > 0) down_.append({bytes, static_cast<size_t>(received)});
  }
  return down_.flush(near_.get()) >= 0;
}

}  // namespace bellhop
