// Signals on the main loop. SIGTERM, SIGINT and SIGQUIT: the first asks for a drain, any later one ends at
// once. SIGHUP is told in the log. No other signal that is meant for somebody else may end the process, which
// would leave its socket behind.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>

#include "proto/result.h"

namespace bellhop {

// Once, at start. A write to a closed socket (SIGPIPE) or past a file's limit (SIGXFSZ) is an error code;
// what nobody has a use for (SIGUSR1, timers, real-time signals) is ignored. Faults and SIGABRT still end the
// process, and so do SIGXCPU and SIGSYS, which are somebody's wish.
void ignore_other_signals();

class Signals {
 public:
  // On the loop's thread; the callbacks run there. None may be empty.
  static Result<std::unique_ptr<Signals>> watch(uv_loop_t* loop, std::function<void()> drain,
                                                std::function<void()> stop_now,
                                                std::function<void()> hang_up);
  // Closes. The loop has to run once more to let libuv go of its handles.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void close();

 private:
  struct Handle;
  Signals(std::function<void()> drain, std::function<void()> stop_now, std::function<void()> hang_up);
  static void on_signal(uv_signal_t* signal, int number);

  std::function<void()> drain_, stop_now_, hang_up_;
  Handle* handles_[4] = {};
  bool draining_ = false;
};

}  // namespace bellhop
