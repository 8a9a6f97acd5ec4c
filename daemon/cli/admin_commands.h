// The commands that ask the bellhop that runs: status, health, tap, drain, log-level.
#pragma once

#include <iosfwd>
#include <string>

#include "daemon/cli/tap.h"

namespace bellhop {

// Where its admin socket is: `socket` if it is not empty, else what the configuration `config_file` says,
// else /run/bellhop/admin.sock.
struct AdminPlace {
  std::string socket, config_file;
};

// Exit codes of all: 0 done, 1 not, 2 the configuration is wrong. Errors go to `err`.
// `watch`: again every two seconds, until a signal ends it.
int show_status(const AdminPlace& place, bool as_json, bool watch, std::ostream& out, std::ostream& err);
// At most one second. 0: it is alive; with `ready`: a publish made now would be taken.
int show_health(const AdminPlace& place, bool ready, std::ostream& out, std::ostream& err);
// Waits until it is done. Prints what is wrong with the configuration, as `check` does: exit code 2.
int reload(const AdminPlace& place, bool as_json, std::ostream& out, std::ostream& err);
// Until `options` or a signal ends it, or bellhop ends.
int show_messages(const AdminPlace& place, const TapOptions& options, std::ostream& out, std::ostream& err);
int begin_drain(const AdminPlace& place, std::ostream& out, std::ostream& err);
int change_log_level(const AdminPlace& place, const std::string& level, std::ostream& out, std::ostream& err);

}  // namespace bellhop
