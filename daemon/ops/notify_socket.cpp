#include "daemon/ops/notify_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace bellhop {

Result<NotifyAddress> notify_address(std::string_view place) {
  NotifyAddress out;
  out.address.sun_family = AF_UNIX;
  const bool is_file = place.starts_with('/');
  if (place.size() < 2 || (!is_file && !place.starts_with('@')))
    return Error{"is neither a path from the root nor an @name"};
  if (place.size() >= sizeof out.address.sun_path)
    return Error{"has " + std::to_string(place.size()) + " bytes, the system allows " +
                 std::to_string(sizeof out.address.sun_path - 1)};
  std::memcpy(out.address.sun_path, place.data(), place.size());
  if (!is_file) out.address.sun_path[0] = '\0';
  // A path ends with a NUL, a name with its last byte.
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + place.size() + (is_file ? 1 : 0));
  return out;
}

Result<NotifySocket> NotifySocket::open(std::string_view place) {
  const auto address = notify_address(place);
  if (!address) return Error{address.error()};
  FileDescriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return Error{std::string("no socket: ") + std::strerror(errno)};
  return NotifySocket(std::move(fd), address.value());
}

// Without connecting: a manager that starts anew listens at the same place.
Result<bool> NotifySocket::send(std::string_view text) const {
  ssize_t sent = 0;
  do {
    sent = ::sendto(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                    reinterpret_cast<const sockaddr*>(&address_.address), address_.size);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return false;
  return Error{std::strerror(errno)};
}

}  // namespace bellhop
