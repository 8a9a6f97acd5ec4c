// What the admin side shows, and what it may do: the only way from here to the rest of the daemon. All of it
// is called by the admin server's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/ops/meter.h"
#include "daemon/ops/reload_state.h"
#include "daemon/ops/taps.h"

namespace bellhop {

struct AdminSources {
  std::function<std::shared_ptr<const config::Config>()> config;  // in use
  std::string version;
  const Meter* meter = nullptr;
  const ReloadState* reload = nullptr;
  Taps* taps = nullptr;
  std::function<std::vector<std::string>()> routes;  // their names, as the configuration is now
  std::function<uint64_t()> inflight_bytes, scratch_bytes;
  std::function<bool()> is_draining;
  std::function<void()> drain;  // begins it, and returns at once
  // Returns at once: the number of the look (ReloadView::looks) that will see the file as it is now. 0:
  // bellhop ends.
  std::function<uint64_t()> request_reload;
  std::chrono::system_clock::time_point started_at = std::chrono::system_clock::now();
};

// One thing that has to be right before a publish made now would be taken.
struct ReadyCheck {
  std::string name, text;
  bool ok = false;
};
std::vector<ReadyCheck> ready_checks(const AdminSources& sources);

}  // namespace bellhop
