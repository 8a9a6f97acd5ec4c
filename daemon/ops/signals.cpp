#include "daemon/ops/signals.h"

#include <csignal>
#include <iterator>
#include <string>
#include <utility>

namespace bellhop {

// Freed in its close callback; `owner` is null once the watch is over.
struct Signals::Handle {
  uv_signal_t signal;
  Signals* owner;
};

namespace {

constexpr int watched[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

}  // namespace

void ignore_other_signals() {
  for (const int number :
       {SIGPIPE, SIGXFSZ, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT})
    std::signal(number, SIG_IGN);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) std::signal(number, SIG_IGN);
}

Signals::Signals(std::function<void()> drain, std::function<void()> stop_now, std::function<void()> hang_up)
    : drain_(std::move(drain)), stop_now_(std::move(stop_now)), hang_up_(std::move(hang_up)) {}

Result<std::unique_ptr<Signals>> Signals::watch(uv_loop_t* loop, std::function<void()> drain,
                                                std::function<void()> stop_now,
                                                std::function<void()> hang_up) {
  std::unique_ptr<Signals> signals(new Signals(std::move(drain), std::move(stop_now), std::move(hang_up)));
  for (size_t i = 0; i < std::size(watched); ++i) {
    auto handle = std::make_unique<Handle>();
    if (const int error = uv_signal_init(loop, &handle->signal); error != 0) {
      return Error{std::string("cannot watch signals: ") + uv_strerror(error)};
    }
    handle->owner = signals.get();
    handle->signal.data = handle.get();
    signals->handles_[i] = handle.release();
    if (const int error = uv_signal_start(&signals->handles_[i]->signal, on_signal, watched[i]); error != 0) {
      return Error{std::string("cannot watch signals: ") + uv_strerror(error)};
    }
  }
  return signals;
}

Signals::~Signals() {
  close();
}

void Signals::close() {
  for (Handle*& each : handles_) {
    Handle* const handle = std::exchange(each, nullptr);
    if (handle == nullptr) continue;
    handle->owner = nullptr;
    uv_close(reinterpret_cast<uv_handle_t*>(&handle->signal),
             [](uv_handle_t* raw) { delete static_cast<Handle*>(raw->data); });
  }
}

void Signals::ignore_all() {
  // With the last handle of a signal libuv restores its default action, which ends the process. So there is
  // one more of each meanwhile, on a loop that never runs; it stays.
  auto* const loop = new uv_loop_t;
  if (uv_loop_init(loop) == 0) {
    for (const int number : watched) {
      auto* const handle = new uv_signal_t;
      uv_signal_init(loop, handle);
      uv_signal_start(
          handle, [](uv_signal_t*, int) {}, number);
    }
  }
  close();
  for (const int number : watched) std::signal(number, SIG_IGN);
}

void Signals::on_signal(uv_signal_t* signal, int number) {
  Signals* const self = static_cast<Handle*>(signal->data)->owner;
  if (self == nullptr) return;
  if (number == SIGHUP) {
    self->hang_up_();
    return;
  }
  // A copy runs, because a callback may destroy us and with us the functions.
  const auto action = self->draining_ ? self->stop_now_ : self->drain_;
  self->draining_ = true;
  action();
}

}  // namespace bellhop
