// A client's connection as the door hands it to its session.
#pragma once

#include <string>

#include "config/config.h"
#include "daemon/ops/file_descriptor.h"

namespace bellhop {

struct Accepted {
  FileDescriptor fd;                       // non-blocking, close-on-exec
  const config::TcpListen* tcp = nullptr;  // null: a Unix socket
  std::string peer;                        // for logs: `unix uid=1000 gid=1000 pid=42`, `tcp 127.0.0.1:40312`
};

}  // namespace bellhop
