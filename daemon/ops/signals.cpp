#include "daemon/ops/signals.h"

#include <csignal>
#include <string>
#include <utility>

namespace bellhop {

// Freed in its close callback; `owner` is null once the watch is over.
struct Signals::Handle {
  uv_signal_t signal;
  Signals* owner;
};

void ignore_sigpipe() {
  std::signal(SIGPIPE, SIG_IGN);
}

Signals::Signals(std::function<void()> drain, std::function<void()> stop_now)
    : drain_(std::move(drain)), stop_now_(std::move(stop_now)) {}

Result<std::unique_ptr<Signals>> Signals::watch(uv_loop_t* loop, std::function<void()> drain,
                                                std::function<void()> stop_now) {
  std::unique_ptr<Signals> signals(new Signals(std::move(drain), std::move(stop_now)));
  const int numbers[2] = {SIGTERM, SIGINT};
  for (size_t i = 0; i < 2; ++i) {
    auto handle = std::make_unique<Handle>();
    if (const int error = uv_signal_init(loop, &handle->signal); error != 0) {
      return Error{std::string("cannot watch signals: ") + uv_strerror(error)};
    }
    handle->owner = signals.get();
    handle->signal.data = handle.get();
    signals->handles_[i] = handle.release();
    if (const int error = uv_signal_start(&signals->handles_[i]->signal, on_signal, numbers[i]); error != 0) {
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

void Signals::on_signal(uv_signal_t* signal, int) {
  Signals* const self = static_cast<Handle*>(signal->data)->owner;
  if (self == nullptr) return;
  // A copy runs, because a callback may destroy us and with us the functions.
  const auto action = self->draining_ ? self->stop_now_ : self->drain_;
  self->draining_ = true;
  action();
}

}  // namespace bellhop
