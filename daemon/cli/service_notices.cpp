#include "daemon/cli/service_notices.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

constexpr uint64_t look_ms = 1000;
constexpr uint64_t end_spare_ms = 5000;  // what the end may take beyond the drain

// CLOCK_MONOTONIC, as the manager compares it with its own.
std::string monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(static_cast<uint64_t>(now.tv_sec) * 1'000'000 +
                        static_cast<uint64_t>(now.tv_nsec) / 1000);
}

// A status is one line.
std::string status_line(std::string status) {
  std::replace(status.begin(), status.end(), '\n', ' ');
  return "STATUS=" + status;
}

}  // namespace

ServiceNotices::ServiceNotices(const ServiceEnvironment& environment)
    : watchdog_us_(environment.watchdog_us) {
  if (environment.notify_socket.empty()) return;
  auto socket = NotifySocket::open(environment.notify_socket);
  if (socket)
    socket_ = std::move(socket.value());
  else
    log_warn("the service manager is told nothing: NOTIFY_SOCKET cannot be used",
             {{"NOTIFY_SOCKET", environment.notify_socket}, {"reason", socket.error()}});
}

void ServiceNotices::close() {
  for (uv_timer_t** each : {&look_timer_, &watchdog_timer_}) {
    uv_timer_t* const timer = std::exchange(*each, nullptr);
    if (timer == nullptr) continue;
    uv_close(reinterpret_cast<uv_handle_t*>(timer),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
  }
}

void ServiceNotices::say(const std::string& status) {
  if (status == told_) return;
  told_ = status;
  tell(status_line(status));
}

void ServiceNotices::ready(uv_loop_t* loop, std::function<std::string()> status) {
  if (!socket_) return;
  status_ = std::move(status);
  told_ = status_();
  tell("READY=1\n" + status_line(told_));
  look_timer_ = start_timer(loop, look_ms,
                            [](uv_timer_t* timer) { static_cast<ServiceNotices*>(timer->data)->look(); });
  if (watchdog_us_ == 0) return;
  tell("WATCHDOG=1");
  watchdog_timer_ = start_timer(loop, std::max<uint64_t>(watchdog_us_ / 2000, 1), [](uv_timer_t* timer) {
    // None is kept for later: the next one comes soon.
    auto* const self = static_cast<ServiceNotices*>(timer->data);
    if (self->unsent_.empty()) self->tell("WATCHDOG=1");
  });
}

void ServiceNotices::reload_begins() {
  if (is_stopping_) return;
  tell("RELOADING=1\nMONOTONIC_USEC=" + monotonic_us() + "\n" +
       status_line("reading the configuration again"));
}

void ServiceNotices::reload_over() {
  if (!status_ || is_stopping_) return;  // the end may overtake a reload
  told_ = status_();
  tell("READY=1\n" + status_line(told_));
}

// The manager's own patience may be shorter than limits.drain_timeout.
void ServiceNotices::stopping(uint64_t within_ms) {
  is_stopping_ = true;
  if (status_) told_ = status_();
  tell("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string((within_ms + end_spare_ms) * 1000) + "\n" +
       status_line(told_));
}

void ServiceNotices::tell(std::string text) {
  if (!socket_) return;
  if (unsent_.size() == unsent_max) unsent_.pop_front();
  unsent_.push_back(std::move(text));
  send_unsent();
}

void ServiceNotices::send_unsent() {
  while (!unsent_.empty()) {
    const Result<bool> sent = socket_->send(unsent_.front());
    if (sent && !sent.value()) return;  // at the next look
    if (!sent && !std::exchange(is_failure_told_, true))
      log_warn("the service manager does not hear bellhop", {{"reason", sent.error()}});
    unsent_.pop_front();
  }
}

void ServiceNotices::look() {
  send_unsent();
  say(status_());
}

uv_timer_t* ServiceNotices::start_timer(uv_loop_t* loop, uint64_t repeat_ms, uv_timer_cb callback) {
  auto* const timer = new uv_timer_t;
  uv_timer_init(loop, timer);
  timer->data = this;
  uv_timer_start(timer, callback, repeat_ms, repeat_ms);
  uv_unref(reinterpret_cast<uv_handle_t*>(timer));  // it keeps nothing from ending
  return timer;
}

}  // namespace bellhop
