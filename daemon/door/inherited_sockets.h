// The sockets that somebody listens on for bellhop and hands over at its start (systemd's bellhop.socket).
// Each is used for the entry of the configuration with its address, as it is: its file, mode and group belong
// to whoever made it.
//
//     descriptors 3, 4 ... ─► checked: listening streams ─► match(): each to one entry ─► take() by a
//     listener
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class InheritedSockets {
 public:
  // Owns the descriptors from `first` on, one for each of `names`. From here on they are close-on-exec and
  // non-blocking. Error: one is none that clients can connect to.
  static Result<InheritedSockets> adopt(int first, const std::vector<std::string>& names);
  InheritedSockets() = default;  // none

  // Finds the entry of each. Error: one has none, or an entry has two.
  Result<void> match(const std::vector<config::Listen>& entries);
  // The one for this entry, once; not open: there is none.
  FileDescriptor take(const config::Listen& entry);

 private:
  struct Socket {
    FileDescriptor fd;
    std::string shown;      // `descriptor 3 (bellhop.socket), unix:/run/bellhop/bellhop.sock`
    std::string for_place;  // the matched entry's
  };
  std::vector<Socket> sockets_;
};

// Whether a socket that is bound to `bound` serves clients of the path `configured`: the same name in the
// same folder, however the folder is written.
bool is_same_socket_path(const std::string& bound, const std::string& configured);

}  // namespace bellhop
