#include "daemon/door/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "config/host_port.h"
#include "daemon/door/socket_address.h"
#include "daemon/door/socket_file.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/trouble.h"

namespace bellhop {
namespace {

constexpr int backlog = 511;
constexpr int accepts_per_event = 64;  // then the loop's other work has a turn
// Without a descriptor left. No backoff: the next accept shows whether it is over.
constexpr uint64_t pause_ms = 100;

FileDescriptor open_spare() {
  return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

std::string because(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

bool admits(const config::UnixListen& listen, const ucred& peer) {
  if (listen.allow_uids.empty() && listen.allow_gids.empty()) return true;
  // SO_PEERCRED tells the primary group alone: a peer that has an allowed group only as a supplementary one
  // is not recognised.
  return std::find(listen.allow_uids.begin(), listen.allow_uids.end(), peer.uid) != listen.allow_uids.end() ||
         std::find(listen.allow_gids.begin(), listen.allow_gids.end(), peer.gid) != listen.allow_gids.end();
}

// What to do when an address cannot be had.
std::string advice_for(int bind_error) {
  if (bind_error == EADDRINUSE) return "; end the process that listens there, or choose another port";
  if (bind_error == EADDRNOTAVAIL) return "; this host has no such address: choose one that it has";
  if (bind_error == EACCES) return "; choose a port from 1024 on: lower ones are root's";
  return "";
}

}  // namespace

// Freed when libuv has let go of both handles. `owner` is null once the listener closed it.
struct Listener::Socket {
  uv_poll_t poll;
  uv_timer_t resume;  // ends a pause for want of descriptors
  Listener* owner = nullptr;
  FileDescriptor fd;
  const config::UnixListen* unix_listen = nullptr;
  const config::TcpListen* tcp_listen = nullptr;
  std::string address;
  std::optional<SocketFile> file;  // of a Unix socket that was made here
  int handles = 2;

  Result<void> open();  // `fd` may be an inherited one
  Result<void> bind_unix();
  Result<void> bind_tcp();
};

Result<void> Listener::Socket::open() {
  if (!fd.is_open()) return unix_listen != nullptr ? bind_unix() : bind_tcp();
  address = unix_listen != nullptr ? "unix:" + unix_listen->path : bound_address(fd.get()).shown();
  return {};
}

Result<void> Listener::Socket::bind_unix() {
  auto made = SocketFile::make(*unix_listen, backlog);
  if (!made) return Error{made.error()};
  fd = std::move(made.value().socket);
  file = std::move(made.value().file);
  address = "unix:" + unix_listen->path;
  return {};
}

Result<void> Listener::Socket::bind_tcp() {
  const std::string shown = config::show_host_port(tcp_listen->host, tcp_listen->port);
  const auto resolved = resolve(tcp_listen->host, tcp_listen->port);
  if (!resolved) return Error{"listen: tcp: " + shown + ": " + resolved.error()};
  const addrinfo* const list = resolved.value().get();
  FileDescriptor socket(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return Error{because("listen: tcp: cannot open a socket")};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0) {
    const int error = errno;
    return Error{"listen: tcp: " + shown + ": cannot bind: " + std::strerror(error) + advice_for(error)};
  }
  if (::listen(socket.get(), backlog) != 0) return Error{because("listen: tcp: " + shown)};
  address = bound_address(socket.get()).shown();
  fd = std::move(socket);
  return {};
}

Listener::Listener(uv_loop_t* loop, OnAccept on_accept)
    : loop_(loop), on_accept_(std::move(on_accept)), spare_(open_spare()) {}

Result<std::unique_ptr<Listener>> Listener::open(uv_loop_t* loop, const std::vector<config::Listen>& listens,
                                                 InheritedSockets& inherited, OnAccept on_accept) {
  std::unique_ptr<Listener> listener(new Listener(loop, std::move(on_accept)));
  for (const config::Listen& listen : listens) {
    auto socket = std::make_unique<Socket>();
    socket->unix_listen = std::get_if<config::UnixListen>(&listen);
    socket->tcp_listen = std::get_if<config::TcpListen>(&listen);
    socket->fd = inherited.take(listen);
    if (Result<void> bound = socket->open(); !bound)
      return Error{bound.error()};  // the sockets before it are closed with the listener
    socket->owner = listener.get();
    if (const int error = uv_poll_init(loop, &socket->poll, socket->fd.get()); error != 0) {
      if (socket->file) socket->file->remove();
      return Error{"listen: cannot watch a socket: " + std::string(uv_strerror(error))};
    }
    uv_timer_init(loop, &socket->resume);
    socket->poll.data = socket->resume.data = socket.get();
    uv_poll_start(&socket->poll, UV_READABLE, on_readable);
    listener->sockets_.push_back(socket.release());
  }
  return listener;
}

void Listener::use(const std::vector<config::Listen>& listens) {
  for (size_t i = 0; i < sockets_.size(); ++i) {
    sockets_[i]->unix_listen = std::get_if<config::UnixListen>(&listens[i]);
    sockets_[i]->tcp_listen = std::get_if<config::TcpListen>(&listens[i]);
  }
}

Listener::~Listener() {
  close();
}

void Listener::close() {
  for (Socket* const socket : std::exchange(sockets_, {})) {
    socket->owner = nullptr;
    // Looked at while it still listens: no newer process can have replaced it without our noticing.
    if (socket->file) socket->file->remove();
    const auto let_go = [](uv_handle_t* raw) {
      auto* const box = static_cast<Socket*>(raw->data);
      if (--box->handles == 0) delete box;
    };
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->poll), let_go);
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->resume), let_go);
    socket->fd.close();  // after uv_close, which took it out of the epoll set
  }
  spare_.close();
}

std::vector<std::string> Listener::addresses() const {
  std::vector<std::string> all;
  for (const Socket* socket : sockets_) all.push_back(socket->address);
  return all;
}

void Listener::on_readable(uv_poll_t* poll, int, int) {
  auto* const socket = static_cast<Socket*>(poll->data);
  if (socket->owner != nullptr) accept_some(*socket);
}

void Listener::on_pause_over(uv_timer_t* timer) {
  auto* const socket = static_cast<Socket*>(timer->data);
  if (socket->owner != nullptr) uv_poll_start(&socket->poll, UV_READABLE, on_readable);
}

void Listener::accept_some(Socket& socket) {
  // The box outlives this call, also if the receiver closes or destroys the listener meanwhile: then `owner`
  // is null.
  for (int i = 0; i < accepts_per_event && socket.owner != nullptr; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    FileDescriptor accepted(
        ::accept4(socket.fd.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      socket.owner->refuse_one_or_pause(socket);
      return;
    }
    Accepted one;
    one.tcp = socket.tcp_listen;
    if (socket.unix_listen != nullptr) {
      ucred peer{};
      socklen_t peer_size = sizeof peer;
      if (::getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) {
        tell_trouble("peer refused", socket.address + std::strerror(errno),
                     "peer refused, its credentials cannot be read",
                     {{"socket", socket.address}, {"reason", std::strerror(errno)}}, spdlog::level::err);
        continue;
      }
      if (!admits(*socket.unix_listen, peer)) {
        tell_trouble("peer refused", socket.address, "peer refused by allow_uids and allow_gids",
                     {{"socket", socket.address}, {"uid", peer.uid}, {"gid", peer.gid}, {"pid", peer.pid}});
        continue;
      }
      one.peer = "unix uid=" + std::to_string(peer.uid) + " gid=" + std::to_string(peer.gid) +
                 " pid=" + std::to_string(peer.pid);
    } else {
      const int on = 1;
      ::setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      one.peer = "tcp " + address_text(from);
    }
    one.fd = std::move(accepted);
    const OnAccept& receiver = socket.owner->on_accept_;
    OnAccept keep = receiver;  // the receiver may destroy the listener, and with it the function
    keep(std::move(one));
  }
}

// Out of descriptors (EMFILE, ENFILE) or memory, the connection stays in the backlog and the socket stays
// readable: polling on would spin. The spare descriptor takes the connection and closes it, so that the peer
// learns at once; then comes a pause.
void Listener::refuse_one_or_pause(Socket& socket) {
  const int reason = errno;
  bool refused = false;
  if ((reason == EMFILE || reason == ENFILE) && spare_.is_open()) {
    spare_.close();
    refused = FileDescriptor(::accept4(socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)).is_open();
  }
  if (!spare_.is_open()) spare_ = open_spare();
  tell_trouble("accepting failed", socket.address + std::strerror(reason), "accepting failed",
               {{"socket", socket.address},
                {"reason", std::strerror(reason)},
                {"refused", refused ? 1 : 0},
                {"pause_ms", uint64_t{pause_ms}}},
               spdlog::level::err);
  uv_poll_stop(&socket.poll);
  uv_timer_start(&socket.resume, on_pause_over, pause_ms, 0);
}

}  // namespace bellhop
