// What a service manager says to the process that it starts, in its environment. These are systemd's
// protocols, which others speak as well: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3). bellhop
// speaks them itself: they are a few variables and datagrams.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/result.h"

namespace bellhop {

inline constexpr int first_inherited_fd = 3;

struct ServiceEnvironment {
  std::string notify_socket;  // empty: nobody wants to be told
  uint64_t watchdog_us = 0;   // within which a sign of life has to come; 0: nobody waits for one
  // One for each inherited descriptor, from first_inherited_fd on: its name, empty when it has none.
  std::vector<std::string> inherited;
  std::vector<std::string> warnings;  // what is wrong and does no harm
};

// `get` gives a variable's value, or null. Variables that are meant for another process than `self` count for
// nothing. Error: sockets are inherited, and nobody can tell how many.
Result<ServiceEnvironment> parse_service_environment(const std::function<const char*(const char*)>& get,
                                                     pid_t self);
// This process's, taken out of its environment, so that no child takes them for its own. Before there are
// other threads.
Result<ServiceEnvironment> take_service_environment();

}  // namespace bellhop
