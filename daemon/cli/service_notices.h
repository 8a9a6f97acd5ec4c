// ServiceNotices: tells a service manager (systemd, by ops/notify_socket.h) how bellhop is: that it serves,
// reads its configuration again or ends, that its main loop goes round, and a line for people. Without a
// manager it does nothing. What the manager does not take never hurts: one warning, and bellhop goes on.
//
//   say ... ─► ready ─► (reload_begins ─► reload_over) ... ─► stopping
//
// The main thread.
#pragma once

#include <uv.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "daemon/ops/notify_socket.h"
#include "daemon/ops/service_environment.h"

namespace bellhop {

class ServiceNotices {
 public:
  explicit ServiceNotices(const ServiceEnvironment& environment);
  ~ServiceNotices() { close(); }
  ServiceNotices(const ServiceNotices&) = delete;
  ServiceNotices& operator=(const ServiceNotices&) = delete;

  // What the start is at, before the loop runs.
  void say(const std::string& status);
  // All listeners listen. From here on `status` is asked each second, and told when it is another one; and
  // the manager gets its signs of life: two within the time that it allows, so that one may be late.
  void ready(uv_loop_t* loop, std::function<std::string()> status);
  void reload_begins();
  void reload_over();
  // bellhop ends, within so long.
  void stopping(uint64_t within_ms);
  // Nothing more is told. The loop has to run once more to let libuv go of the handles. Again is harmless.
  void close();

 private:
  static constexpr size_t unsent_max = 32;  // then the manager has not read for long
  void tell(std::string text);
  void send_unsent();
  void look();
  uv_timer_t* start_timer(uv_loop_t* loop, uint64_t repeat_ms, uv_timer_cb callback);

  std::optional<NotifySocket> socket_;
  const uint64_t watchdog_us_;
  std::function<std::string()> status_;
  std::string told_;                // the last status
  std::deque<std::string> unsent_;  // the manager had no room
  bool is_failure_told_ = false, is_stopping_ = false;
  uv_timer_t *look_timer_ = nullptr, *watchdog_timer_ = nullptr;  // freed by their close callbacks
};

}  // namespace bellhop
