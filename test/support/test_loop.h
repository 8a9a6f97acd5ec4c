// A libuv loop for a test: runs until a condition holds, with a deadline instead of sleeps, and checks at its
// end that every handle was let go.
#pragma once

#include <uv.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace bellhop::test {

class TestLoop {
 public:
  TestLoop() {
    uv_loop_init(&loop_);
    uv_timer_init(&loop_, &tick_);
  }
  // Ends the process if a handle stays open: that is a leak in what was tested.
  ~TestLoop() {
    uv_close(reinterpret_cast<uv_handle_t*>(&tick_), nullptr);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (uv_run(&loop_, UV_RUN_NOWAIT) != 0 && std::chrono::steady_clock::now() < give_up) {
    }
    if (uv_loop_close(&loop_) != 0) {
      std::fprintf(stderr, "a loop was left with open handles:\n");
      uv_print_all_handles(&loop_, stderr);
      std::abort();
    }
  }
  TestLoop(const TestLoop&) = delete;
  TestLoop& operator=(const TestLoop&) = delete;

  uv_loop_t* get() { return &loop_; }

  // True if the condition came to hold in time.
  template <typename Condition>
  bool run_until(Condition holds, int timeout_ms = 10000) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    uv_timer_start(
        &tick_, [](uv_timer_t*) {}, 2, 2);
    bool held = holds();
    while (!held && std::chrono::steady_clock::now() < give_up) {
      uv_run(&loop_, UV_RUN_ONCE);
      held = holds();
    }
    uv_timer_stop(&tick_);
    return held;
  }

  // Whatever is ready now, and the close callbacks.
  void run_ready() {
    for (int i = 0; i < 4; ++i) uv_run(&loop_, UV_RUN_NOWAIT);
  }

 private:
  uv_loop_t loop_;
  uv_timer_t tick_;
};

}  // namespace bellhop::test
