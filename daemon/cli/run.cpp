#include "daemon/cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <system_error>
#include <thread>

#include "config/load.h"
#include "daemon/broker/broker_watch.h"
#include "daemon/broker/control.h"
#include "daemon/cli/admin_side.h"
#include "daemon/cli/adopt_sockets.h"
#include "daemon/cli/config_watch.h"
#include "daemon/cli/make_snapshot.h"
#include "daemon/cli/reloader.h"
#include "daemon/cli/retirement.h"
#include "daemon/cli/service_notices.h"
#include "daemon/cli/service_status.h"
#include "daemon/cli/warnings.h"
#include "daemon/door/listener.h"
#include "daemon/door/sessions.h"
#include "daemon/ops/log.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/process_limits.h"
#include "daemon/ops/service_environment.h"
#include "daemon/ops/signals.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

// Of drain_timeout, at most: for the last closes of sessions that did not end by themselves, and the stores'.
constexpr uint64_t last_closes_ms_max = 2000;
constexpr uint64_t look_around_ms = 5000;
constexpr unsigned trims_after_shrinking = 2;  // threads that have just ended give some back only later
constexpr std::chrono::milliseconds last_lines_wait{200};  // nobody may be reading the log
constexpr std::chrono::milliseconds last_wait{1000};
constexpr int wrong_usage = 2;

// The main loop's parts, wired; destroyed in reverse order.
class Daemon {
 public:
  Daemon(std::shared_ptr<const config::Config> config, std::string file,
         const ServiceEnvironment& environment, InheritedSockets inherited)
      : config_(std::move(config)),
        file_(std::move(file)),
        inherited_(std::move(inherited)),
        notices_(environment) {}
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    if (!loop_open_) return;
    if (closer_.joinable()) closer_.join();
    admin_.reset();  // its thread asks the others
    reloader_.reset();
    control_.reset();
    signals_.reset();
    config_watch_.reset();
    broker_watch_.reset();
    listener_.reset();
    sessions_.reset();
    if (mailbox_ != nullptr) mailbox_->close();
    notices_.close();
    for (uv_timer_t* timer : {&timer_, &look_around_timer_}) {
      if (uv_is_closing(reinterpret_cast<uv_handle_t*>(timer)) == 0)
        uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
    }
    uv_run(&loop_, UV_RUN_DEFAULT);  // libuv lets go of their handles
    uv_loop_close(&loop_);
  }

  int run() {
    const config::Config& config = *config_;
    notices_.say("opening the stores");
    shared_.meter = std::make_unique<Meter>(config);
    shared_.budget = std::make_unique<Budget>(config.limits.inflight_bytes);
    shared_.hop_bodies = std::make_unique<Quota>(config.limits.inflight_bytes);
    auto made = make_snapshot(config_, *shared_.meter, nullptr);
    if (!made) return fail(made.error());
    for (const auto& store : made.value()->stores->all()) {
      stores_.keep(store);
      store->begin_upkeep();
    }
    auto control = std::make_shared<Control>(config_, made.value()->tls, tells(shared_.meter));
    shared_.current.set(std::move(made.value()));  // nothing here keeps it
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
        &loop_, [this] { drain(); }, [this] { stop_now(); }, [this] { reloader_->request(); });
    if (!signals) return fail(signals.error());
    signals_ = std::move(signals.value());
    auto listener = Listener::open(&loop_, config.listen, inherited_,
                                   [this](Accepted accepted) { sessions_->accept(std::move(accepted)); });
    if (!listener) return fail(listener.error());
    listener_ = std::move(listener.value());
    tell_warnings(config);
    reloader_ = std::make_unique<Reloader>(
        file_, shared_.current, *shared_.meter, reload_, mailbox_,
        Reloader::Use{[this](const Reloader::Next& next) { return put_to_use(next); },
                      [this](const std::vector<std::string>& files) { watch_files(files); },
                      [this] { notices_.reload_begins(); }, [this] { notices_.reload_over(); },
                      tells(shared_.meter)});
    if (auto opened = open_admin(config.admin); !opened) return fail(opened.error());
    control_ = std::move(control);
    // What is read for a change may have changed since the start read it.
    if (config.admin.watch) reloader_->request_if_changed();
    for (const std::string& address : listener_->addresses()) log_info("listening", {{"address", address}});
    notices_.ready(&loop_, [this] { return status(); });
    uv_run(&loop_, UV_RUN_DEFAULT);
    troubles().sum_up_all(TroubleBook::Clock::now());
    log_info("stopped");
    return 0;
  }

 private:
  Result<void> open_admin(const config::Admin& where) {
    AdminSources sources;
    sources.config = [this] { return shared_.current.get()->config; };
    sources.version = BELLHOP_VERSION;
    sources.meter = shared_.meter.get();
    sources.reload = &reload_;
    sources.taps = &shared_.taps;
    sources.routes = [this] {
      std::vector<std::string> names;
      for (const config::Route& route : shared_.current.get()->config->routes) names.push_back(route.name);
      return names;
    };
    sources.inflight_bytes = [this] { return shared_.budget->used_bytes(); };
    sources.scratch_bytes = [this] { return shared_.spill.quota->used_bytes() + stores_.scratch_bytes(); };
    sources.is_draining = [this] { return draining_.load(); };
    sources.drain = [this, mailbox = mailbox_] { mailbox->post([this] { drain(); }); };
    sources.request_reload = [this] { return reloader_->request(); };
    auto admin = AdminSide::open(&loop_, where, inherited_, std::move(sources), [this] { watch_broker(); });
    if (!admin) return Error{admin.error()};
    admin_ = std::move(admin.value());
    for (const std::string& address : admin_->addresses()) log_info("admin", {{"address", address}});
    return {};
  }

  // From when somebody first asks how bellhop is: a broker gets no connections that nobody wants to know of.
  void watch_broker() {
    if (broker_watch_ != nullptr || draining_.load()) return;
    const auto snapshot = shared_.current.get();
    broker_watch_ = std::make_unique<BrokerWatch>(
        &loop_, snapshot->config, snapshot->tls, shared_.nodes,
        [meter = shared_.meter.get()] { return !meter->has_session_at_broker(); },
        [meter = shared_.meter.get()](bool is_up) { meter->saw_broker(is_up); });
  }

  std::string status() {
    ServiceFacts facts;
    facts.sessions = sessions_->size();
    if (draining_.load()) {
      facts.drain_left_ms = drain_ends_at_ms_ - std::min(uv_now(&loop_), drain_ends_at_ms_);
      return status_of(facts);
    }
    facts.addresses = listener_->addresses();
    facts.broker = shared_.meter->seen();
    facts.waits = stores_in_trouble(*shared_.current.get()->config, *shared_.meter);
    const ReloadView reload = reload_.view();
    if (!reload.last_was_successful) facts.reload_failed = reload.generation;
    return status_of(facts);
  }

  // A configuration that was read again. Sessions take it before their next message. False: bellhop ends.
  bool put_to_use(const Reloader::Next& next) {
    const Snapshot& snapshot = *next.snapshot;
    for (const auto& store : snapshot.stores->all()) stores_.keep(store);
    if (next.control != nullptr)
      retirement_.retire(draining_.load() ? next.control : std::exchange(control_, next.control));
    if (draining_.load()) return false;
    const auto before = shared_.current.get();
    const config::Config& config = *snapshot.config;
    shared_.budget->set_bytes_max(config.limits.inflight_bytes);
    shared_.hop_bodies->set_bytes_max(config.limits.inflight_bytes);
    listener_->use(config.listen);
    shared_.current.set(next.snapshot);
    sessions_->look_at_configuration();
    for (const auto& store : before->stores->all()) {
      const auto& all = snapshot.stores->all();
      if (std::find(all.begin(), all.end(), store) == all.end()) store->end_upkeep();
    }
    for (const auto& store : snapshot.stores->all()) store->begin_upkeep();
    if (config.log_level != before->config->log_level) set_log_level(config.log_level);
    tell_warnings(config);
    if (config.broker != before->config->broker && broker_watch_ != nullptr) {
      broker_watch_.reset();
      watch_broker();
    }
    return true;
  }

  void watch_files(const std::vector<std::string>& files) {
    if (!shared_.current.get()->config->admin.watch || draining_.load()) {
      config_watch_.reset();
      return;
    }
    if (config_watch_ == nullptr)
      config_watch_ = std::make_unique<ConfigWatch>(&loop_, [this] { reloader_->request_if_changed(); });
    config_watch_->watch(files);
  }

  static int fail(const std::string& why) {
    log_error("cannot start", {{"reason", why}});
    return 1;
  }

  // After 200 sessions a third to a half of what is resident was free memory that the allocator kept.
  void look_around() {
    retirement_.look();
    troubles().sum_up(TroubleBook::Clock::now());
    if (sessions_->has_shrunk()) trims_due_ = trims_after_shrinking;
    if (trims_due_ == 0) return;
    --trims_due_;
    give_back_free_memory();
  }

  //   SIGTERM ─► each session ends when it has nothing unsettled ─► all ended ─► stores close ─► the end
  //                                                                            drain_timeout ─► the end, at
  //                                                                            once
  // 2 s before drain_timeout the sessions that are left are closed whatever they wait for.
  void drain() {
    if (draining_.exchange(true)) return;  // the admin socket asked before
    const uint64_t timeout_ms = shared_.current.get()->config->limits.drain_timeout_ms;
    log_info("draining", {{"sessions", sessions_->size()}, {"drain_timeout_ms", timeout_ms}});
    listener_->close();
    drain_ends_at_ms_ = uv_now(&loop_) + timeout_ms;
    notices_.stopping(timeout_ms);
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
    uv_timer_stop(&look_around_timer_);  // it begins retirements
    const auto close = [this] {
      stores_.close_all();
      control_->stop();
      // Nobody needs what these do any more: one that stands still is left.
      if (!reloader_->stop(last_wait) || !retirement_.is_over(last_wait)) leave_settled();
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
    signals_->ignore_all();  // the end is a moment away, and in order: one more signal changes nothing
    broker_watch_.reset();
    config_watch_.reset();
    admin_->close();
    mailbox_->close();
  }

  // All sessions have ended well, and so have the stores in use.
  [[noreturn]] static void leave_settled() {
    troubles().sum_up_all(TroubleBook::Clock::now());
    log_info("stopped");
    finish_log(last_lines_wait);
    _exit(0);
  }

  void stop_now() {
    log_warn("stopped at once");
    leave_at_once();
  }

  // Threads may hang in a dead mount: nothing is waited for.
  [[noreturn]] void leave_at_once() {
    listener_->close();
    admin_->close();
    for (const auto& store : stores_.all()) {
      for (const std::string& key : store->uploads_under_way())
        log_warn("claim is left behind, whole or in part: no message names it",
                 {{"key", key}, {"store", store->name()}});
    }
    troubles().sum_up_all(TroubleBook::Clock::now());
    finish_log(last_lines_wait);
    _exit(1);
  }

  const std::shared_ptr<const config::Config> config_;  // of the start
  const std::string file_;
  InheritedSockets inherited_;
  ServiceNotices notices_;
  StoreKeeper stores_;
  Retirement retirement_{stores_};
  Shared shared_;
  ReloadState reload_;
  std::atomic<bool> draining_{false};
  uv_loop_t loop_{};
  uv_timer_t timer_{}, look_around_timer_{};
  bool loop_open_ = false;
  uint64_t drain_ends_at_ms_ = 0;  // the loop's time
  unsigned trims_due_ = 0;
  std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<AdminSide> admin_;
  std::unique_ptr<BrokerWatch> broker_watch_;
  std::unique_ptr<Signals> signals_;
  std::shared_ptr<Control> control_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<ConfigWatch> config_watch_;
  std::thread closer_;
};

}  // namespace

int run(const std::string& config_file) {
  const Result<ServiceEnvironment> environment = take_service_environment();
  config::Loaded loaded = config::load_file(config_file);
  if (!environment) loaded.errors.push_back("bellhop: " + environment.error());
  if (!loaded.errors.empty()) {
    for (const std::string& error : loaded.errors) std::cerr << error << '\n';
    return environment && loaded.lacks_only_files ? 1 : wrong_usage;
  }
  auto config = std::make_shared<const config::Config>(std::move(loaded.config));
  set_up_log(*config);
  ignore_other_signals();
  raise_descriptor_limit();
  give_back_large_buffers();
  log_info("starting", {{"version", BELLHOP_VERSION}, {"name", config->service}, {"config", config_file}});
  for (const std::string& warning : loaded.warnings) log_warn(warning);
  for (const std::string& warning : environment.value().warnings) log_warn(warning);
  int code = wrong_usage;
  if (auto inherited = adopt_sockets(environment.value().inherited, *config); !inherited)
    log_error("cannot start", {{"reason", inherited.error()}});
  else
    code = Daemon(config, config_file, environment.value(), std::move(inherited.value())).run();
  finish_log(last_lines_wait);
  return code;
}

}  // namespace bellhop
