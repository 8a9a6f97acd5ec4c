// SIGTERM and SIGINT on the main loop: the first asks for a drain, any later one ends at once.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>

#include "proto/result.h"

namespace bellhop {

// A write to a closed socket is an error code, not the end of the process. Once, at start.
void ignore_sigpipe();

class Signals {
 public:
  // On the loop's thread; the callbacks run there. Neither may be empty.
  static Result<std::unique_ptr<Signals>> watch(uv_loop_t* loop, std::function<void()> drain,
                                                std::function<void()> stop_now);
  // Closes. The loop has to run once more to let libuv go of its handles.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void close();

 private:
  struct Handle;
  Signals(std::function<void()> drain, std::function<void()> stop_now);
  static void on_signal(uv_signal_t* signal, int number);

  std::function<void()> drain_, stop_now_;
  Handle* handles_[2] = {};
  bool draining_ = false;
};

}  // namespace bellhop
