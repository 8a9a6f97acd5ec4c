// The socket on which a service manager hears how its service is: one datagram for each thing said, lines of
// NAME=value (sd_notify(3)).
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

struct NotifyAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};
// `place` is what NOTIFY_SOCKET says: a path from the root, or `@name` for a name that is no file.
Result<NotifyAddress> notify_address(std::string_view place);

class NotifySocket {
 public:
  static Result<NotifySocket> open(std::string_view place);

  // Never blocks. False: the receiver has no room now. Error: nobody hears it; a later one may arrive.
  Result<bool> send(std::string_view text) const;

 private:
  NotifySocket(FileDescriptor fd, const NotifyAddress& address) : fd_(std::move(fd)), address_(address) {}

  FileDescriptor fd_;
  NotifyAddress address_;
};

}  // namespace bellhop
