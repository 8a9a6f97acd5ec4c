// Signals on the main loop. The first SIGTERM, SIGINT or SIGQUIT asks for a drain, a later one ends the
// process at once. SIGHUP is handed on. No other signal that is meant for somebody else may end the
// process, because its socket would stay behind.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>

#include "proto/result.h"

namespace bellhop {

// Call it once, at start. A write to a closed socket (SIGPIPE) or past a file's limit (SIGXFSZ) then gives an
// error code. Signals that bellhop has no use for (SIGUSR1, timers, real-time signals) are ignored. Faults
// and SIGABRT still end the process. So do SIGXCPU and SIGSYS, which somebody sends on purpose.
void ignore_other_signals();

class Signals {
 public:
  // The loop's thread; the callbacks run there, and none may be empty.
  static Result<std::unique_ptr<Signals>> watch(uv_loop_t* loop, std::function<void()> drain,
                                                std::function<void()> stop_now,
                                                std::function<void()> hang_up);
  // Closes. The loop has to run once more, so that libuv lets go of its handles.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void close();
  // Closes, and from now on the watched signals do nothing. Once, at the process's end.
  void ignore_all();

 private:
  struct Handle;
  Signals(std::function<void()> drain, std::function<void()> stop_now, std::function<void()> hang_up);
  static void on_signal(uv_signal_t* signal, int number);

  std::function<void()> drain_, stop_now_, hang_up_;
  Handle* handles_[4] = {};
  bool draining_ = false;
};

}  // namespace bellhop
