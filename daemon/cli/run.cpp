#include "daemon/cli/run.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <system_error>
#include <thread>

#include "config/hold_warnings.h"
#include "config/load.h"
#include "config/retention_warnings.h"
#include "config/slip_warnings.h"
#include "daemon/broker/broker_watch.h"
#include "daemon/broker/control.h"
#include "daemon/cli/admin_side.h"
#include "daemon/cli/open_stores.h"
#include "daemon/door/listener.h"
#include "daemon/door/sessions.h"
#include "daemon/ops/log.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/signals.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

// Of drain_timeout, at most: for the last closes of sessions that did not end by themselves, and the stores'.
constexpr uint64_t last_closes_ms_max = 2000;
constexpr uint64_t look_around_ms = 5000;
constexpr std::chrono::milliseconds last_lines_wait{200};  // nobody may be reading the log

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// By default glibc learns from the first large buffer that is freed to keep such ones in its arenas, of which
// each session's thread has one: many sessions then keep what none of them uses. With a fixed limit a large
// buffer is the system's again once it is freed.
void give_back_large_buffers() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
}

// A session takes about six descriptors, so the usual soft limit of 1024 is too low for many of them.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The main loop's parts, wired; destroyed in reverse order.
class Daemon {
 public:
  explicit Daemon(std::shared_ptr<const config::Config> config) { shared_.config = std::move(config); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    if (!loop_open_) return;
    if (closer_.joinable()) closer_.join();
    control_.reset();
    signals_.reset();
    broker_watch_.reset();
    admin_.reset();
    listener_.reset();
    sessions_.reset();
    if (mailbox_ != nullptr) mailbox_->close();
    for (uv_timer_t* timer : {&timer_, &look_around_timer_}) {
      if (uv_is_closing(reinterpret_cast<uv_handle_t*>(timer)) == 0)
        uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
    }
    uv_run(&loop_, UV_RUN_DEFAULT);  // libuv lets go of their handles
    uv_loop_close(&loop_);
  }

  int run() {
    const config::Config& config = *shared_.config;
    shared_.host = host_name();
    shared_.routing = std::make_unique<config::RoutingTable>(shared_.config);
    shared_.meter = std::make_unique<Meter>(config);
    shared_.budget = std::make_unique<Budget>(config.limits.inflight_bytes);
    shared_.hop_bodies = std::make_unique<Quota>(config.limits.inflight_bytes);
    auto stores = open_stores(config, shared_.meter.get());
    if (!stores) return fail(stores.error());
    shared_.stores = std::move(stores.value());
    if (config.broker.uses_tls()) {
      auto tls = TlsContext::open(config.broker.tls);
      if (!tls) return fail(tls.error());
      shared_.tls = std::move(tls.value());
      if (!config.broker.tls.verify)
        log_warn("broker.tls.verify is false: anybody between bellhop and the broker can pose as the broker");
    }
    if (int error = uv_loop_init(&loop_); error != 0)
      return fail(std::string("cannot open a loop: ") + uv_strerror(error));
    loop_open_ = true;
    uv_timer_init(&loop_, &timer_);
    timer_.data = this;
    uv_timer_init(&loop_, &look_around_timer_);
    look_around_timer_.data = this;
    uv_unref(reinterpret_cast<uv_handle_t*>(&look_around_timer_));
    uv_timer_start(
        &look_around_timer_, [](uv_timer_t* timer) { static_cast<Daemon*>(timer->data)->look_around(); },
        look_around_ms, look_around_ms);
    auto mailbox = Mailbox::open(&loop_);
    if (!mailbox) return fail(mailbox.error());
    mailbox_ = mailbox.value();
    sessions_ = std::make_unique<Sessions>(shared_, mailbox_);
    // Before there is a socket that a signal could leave behind.
    auto signals = Signals::watch(
        &loop_, [this] { drain(); }, [this] { stop_now(); },
        [] { log_warn("SIGHUP ignored: to read a changed configuration, restart bellhop"); });
    if (!signals) return fail(signals.error());
    signals_ = std::move(signals.value());
    auto listener = Listener::open(&loop_, config.listen,
                                   [this](Accepted accepted) { sessions_->accept(std::move(accepted)); });
    if (!listener) return fail(listener.error());
    listener_ = std::move(listener.value());
    for (const std::string& warning : config::retention_warnings(config)) log_warn(warning);
    for (const std::string& warning : config::slip_warnings(config)) log_warn(warning);
    for (const std::string& warning : config::hold_warnings(config)) log_warn(warning);
    if (auto opened = open_admin(); !opened) return fail(opened.error());
    control_ = std::make_unique<Control>(shared_.config, shared_.tls.get());
    for (const std::string& address : listener_->addresses()) log_info("listening", {{"address", address}});
    uv_run(&loop_, UV_RUN_DEFAULT);
    troubles().sum_up_all(TroubleBook::Clock::now());
    log_info("stopped");
    return 0;
  }

 private:
  Result<void> open_admin() {
    const config::Config& config = *shared_.config;
    AdminSources sources;
    sources.service = config.service;
    sources.version = BELLHOP_VERSION;
    sources.meter = shared_.meter.get();
    sources.reload = &reload_;
    sources.inflight_bytes = [this] { return shared_.budget->used_bytes(); };
    sources.scratch_bytes = [this] {
      return shared_.spill.quota->used_bytes() + shared_.stores->scratch_bytes();
    };
    sources.is_draining = [this] { return draining_.load(); };
    sources.drain = [this, mailbox = mailbox_] { mailbox->post([this] { drain(); }); };
    auto admin = AdminSide::open(&loop_, config.admin, std::move(sources), [this] { watch_broker(); });
    if (!admin) return Error{admin.error()};
    admin_ = std::move(admin.value());
    for (const std::string& address : admin_->addresses()) log_info("admin", {{"address", address}});
    return {};
  }

  // From when somebody first asks how bellhop is: a broker gets no connections that nobody wants to know of.
  void watch_broker() {
    if (broker_watch_ != nullptr || draining_.load()) return;
    broker_watch_ = std::make_unique<BrokerWatch>(
        &loop_, shared_.config->broker, shared_.tls.get(), shared_.nodes,
        [meter = shared_.meter.get()] { return !meter->has_session_at_broker(); },
        [meter = shared_.meter.get()](bool is_up) { meter->saw_broker(is_up); });
  }

  int fail(const std::string& why) {
    log_error("cannot start", {{"reason", why}});
    return 1;
  }

  // After 200 sessions a third to a half of what is resident was free memory that the allocator kept.
  void look_around() {
    troubles().sum_up(TroubleBook::Clock::now());
    if (sessions_->has_shrunk()) malloc_trim(0);
  }

  //   SIGTERM ─► each session ends when it has nothing unsettled ─► all ended ─► stores close ─► the end
  //                                                                            drain_timeout ─► the end, at
  //                                                                            once
  // 2 s before drain_timeout the sessions that are left are closed whatever they wait for.
  void drain() {
    if (draining_.exchange(true)) return;  // the admin socket asked before
    const uint64_t timeout_ms = shared_.config->limits.drain_timeout_ms;
    log_info("draining", {{"sessions", sessions_->size()}, {"drain_timeout_ms", timeout_ms}});
    listener_->close();
    drain_ends_at_ms_ = uv_now(&loop_) + timeout_ms;
    const uint64_t last_closes_ms = std::min(last_closes_ms_max, timeout_ms / 2);
    uv_timer_start(
        &timer_, [](uv_timer_t* timer) { static_cast<Daemon*>(timer->data)->close_the_rest(); },
        timeout_ms - last_closes_ms, 0);
    sessions_->drain([this] { close_stores(); });
  }

  void close_the_rest() {
    const uint64_t now_ms = uv_now(&loop_);
    const uint64_t left_ms = drain_ends_at_ms_ - std::min(now_ms, drain_ends_at_ms_);
    if (sessions_->size() != 0) {
      log_warn("drain_timeout is nearly over, bellhop closes what is left",
               {{"sessions", sessions_->size()}});
      sessions_->stop_all("bellhop is shutting down", left_ms);
    }
    uv_timer_start(
        &timer_, [](uv_timer_t* timer) { static_cast<Daemon*>(timer->data)->drain_over(); }, left_ms, 0);
  }

  // Every session has ended. A store may stand still (a dead mount), and a name lookup too: so they are
  // waited for by another thread, while this one keeps the time and hears signals.
  void close_stores() {
    const auto close = [this] {
      control_->stop();
      shared_.stores->close();
    };
    const auto done = [this, mailbox = mailbox_] { mailbox->post([this] { finish(); }); };
    try {
      closer_ = std::thread([close, done] {
        close();
        done();
      });
    } catch (const std::system_error&) {
      close();
      done();
    }
  }

  void drain_over() {
    for (const LogFields& session : sessions_->what_is_unsettled())
      log_warn(Session::not_ended_in_time, session);
    log_warn("drain_timeout is over, bellhop ends", {{"sessions", sessions_->size()}});
    leave_at_once();
  }

  void finish() {
    for (uv_timer_t* timer : {&timer_, &look_around_timer_})
      uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
    signals_->close();
    broker_watch_.reset();
    admin_->close();
    // The end is a moment away, and in order: one more signal changes nothing.
    for (const int number : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) std::signal(number, SIG_IGN);
    mailbox_->close();
  }

  void stop_now() {
    log_warn("stopped at once");
    leave_at_once();
  }

  // Threads may hang in a dead mount: nothing is waited for.
  [[noreturn]] void leave_at_once() {
    listener_->close();
    admin_->close();
    for (const auto& store : shared_.stores->all()) {
      for (const std::string& key : store->uploads_under_way())
        log_warn("claim is left behind, whole or in part: no message names it",
                 {{"key", key}, {"store", store->name()}});
    }
    troubles().sum_up_all(TroubleBook::Clock::now());
    finish_log(last_lines_wait);
    _exit(1);
  }

  Shared shared_;
  ReloadState reload_;
  std::atomic<bool> draining_{false};
  uv_loop_t loop_{};
  uv_timer_t timer_{}, look_around_timer_{};
  bool loop_open_ = false;
  uint64_t drain_ends_at_ms_ = 0;  // the loop's time
  std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<AdminSide> admin_;
  std::unique_ptr<BrokerWatch> broker_watch_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<Control> control_;
  std::thread closer_;
};

}  // namespace

int run(const std::string& config_file) {
  config::Loaded loaded = config::load_file(config_file);
  if (!loaded.errors.empty()) {
    for (const std::string& error : loaded.errors) std::cerr << error << '\n';
    return 2;
  }
  auto config = std::make_shared<const config::Config>(std::move(loaded.config));
  set_up_log(*config);
  ignore_other_signals();
  raise_descriptor_limit();
  give_back_large_buffers();
  log_info("starting", {{"version", BELLHOP_VERSION}, {"name", config->service}, {"config", config_file}});
  for (const std::string& warning : loaded.warnings) log_warn(warning);
  int code = 0;
  {
    Daemon daemon(config);
    code = daemon.run();
  }
  finish_log(last_lines_wait);
  return code;
}

}  // namespace bellhop
