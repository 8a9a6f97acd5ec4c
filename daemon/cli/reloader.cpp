#include "daemon/cli/reloader.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "daemon/cli/make_snapshot.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {
// A broker that is there takes declarations in milliseconds.
constexpr std::chrono::milliseconds declare_wait_max{5000}, declare_look{100};
}  // namespace

Reloader::Reloader(std::string file, const CurrentSnapshot& current, Meter& meter, ReloadState& state,
                   std::shared_ptr<Mailbox> mailbox, Use use)
    : file_(std::move(file)),
      current_(current),
      meter_(meter),
      state_(state),
      mailbox_(std::move(mailbox)),
      use_(std::move(use)) {}

Reloader::~Reloader() {
  stop({});
  if (thread_.joinable()) thread_.join();
}

uint64_t Reloader::request() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_ ? 0 : ask(false);
}

void Reloader::request_if_changed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stopping_) ask(true);
}

// Under the mutex. The number of the look that will see it.
uint64_t Reloader::ask(bool only_if_changed) {
  (only_if_changed ? is_look_wanted_ : is_wanted_) = true;
  changed_.notify_all();
  if (thread_.joinable()) return looks_begun_ + 1;
  try {
    thread_ = std::thread(&Reloader::run, this);
    return looks_begun_ + 1;
  } catch (const std::system_error& error) {
    is_wanted_ = is_look_wanted_ = false;
    state_.failed({file_ + ": cannot be read again: no thread can be started: " + error.what()});
    state_.looked(++looks_begun_);
    return looks_begun_;
  }
}

bool Reloader::stop(std::chrono::milliseconds within) {
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, within, [this] { return !is_at_work_; });
}

bool Reloader::is_stopping() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

// --- its thread ---

void Reloader::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || is_wanted_ || is_look_wanted_; });
    if (stopping_) return;
    const bool only_if_changed = !std::exchange(is_wanted_, false);
    is_look_wanted_ = false;
    const uint64_t number = ++looks_begun_;
    is_at_work_ = true;
    lock.unlock();
    try {
      look(only_if_changed);
    } catch (const std::exception& error) {  // threads or memory have run out
      fail({file_ + ": " + error.what()}, only_if_changed, current_.generation());
    }
    if (std::exchange(is_begin_told_, false)) on_main_thread([this] { use_.is_over(); });
    state_.looked(number);
    lock.lock();
    is_at_work_ = false;
    changed_.notify_all();
  }
}

void Reloader::tell_begin() {
  is_begin_told_ = true;
  on_main_thread([this] { use_.begins(); });
}

void Reloader::look(bool only_if_changed) {
  if (!only_if_changed) tell_begin();
  config::Loaded loaded = config::load_file(file_);
  const std::vector<std::string> files = std::move(loaded.files);
  const auto before = current_.get();
  std::vector<std::string> errors = std::move(loaded.errors);
  if (errors.empty()) errors = what_needs_restart(*before->config, loaded.config, file_);
  if (only_if_changed && errors.empty() && loaded.config == *before->config) {
    state_.is_as_it_was();
    last_errors_.clear();
    on_main_thread([&] { use_.note_files(files); });
    return;
  }
  if (only_if_changed && (errors.empty() || errors != last_errors_)) tell_begin();
  Next next;
  if (errors.empty()) {
    auto made =
        make_snapshot(std::make_shared<const config::Config>(std::move(loaded.config)), meter_, before.get());
    if (made)
      next.snapshot = std::move(made.value());
    else
      errors.push_back(file_ + ": " + made.error());
  }
  bool is_used = false;
  if (errors.empty()) {
    next.control = declare(*before, *next.snapshot);
    for (const std::string& warning : loaded.warnings) log_warn(warning);
    on_main_thread([&] {
      is_used = use_.put_to_use(next);
      use_.note_files(files);
    });
    if (!is_used) errors.push_back(file_ + ": not read again: bellhop is shutting down");
  } else {
    on_main_thread([&] { use_.note_files(files); });
  }
  if (!errors.empty()) return fail(std::move(errors), only_if_changed, before->generation);
  last_errors_.clear();
  log_info("configuration reloaded", {{"number", next.snapshot->generation}});
  state_.succeeded(next.snapshot->generation, std::move(loaded.warnings), std::chrono::system_clock::now());
}

// The same again, when nobody asked, is not told again.
void Reloader::fail(std::vector<std::string> errors, bool only_if_changed, uint64_t stays) {
  if (only_if_changed && errors == last_errors_) return;
  last_errors_ = errors;
  for (const std::string& error : errors) log_error(error);
  log_error("configuration not reloaded: the one before stays in use", {{"number", stays}});
  state_.failed(std::move(errors));
}

// Routes to a pipeline that nobody has declared would lose messages, so what is new is declared first. A
// broker that is away is not waited for: then nobody can publish either.
std::shared_ptr<Control> Reloader::declare(const Snapshot& before, const Snapshot& next) {
  const config::Config& config = *next.config;
  if (config.broker == before.config->broker && config.pipelines == before.config->pipelines) return nullptr;
  if (config.broker != before.config->broker) meter_.forget_broker();  // before the next one is heard of
  auto control = std::make_shared<Control>(next.config, next.tls, use_.saw_broker);
  for (std::chrono::milliseconds waited{0}; waited < declare_wait_max && !is_stopping();
       waited += declare_look) {
    if (control->wait_until_done(static_cast<uint32_t>(declare_look.count()))) break;
  }
  return control;
}

// Waits until it was run. False: stop() was called first, and it never will be.
bool Reloader::on_main_thread(const std::function<void()>& task) {
  struct Shared {
    std::mutex mutex;
    bool is_given_up = false;
  };
  const auto shared = std::make_shared<Shared>();
  const uint64_t number = ++main_tasks_;
  mailbox_->post([this, number, shared, &task] {
    const std::lock_guard<std::mutex> running(shared->mutex);
    if (shared->is_given_up) return;  // what it refers to is gone
    task();
    const std::lock_guard<std::mutex> lock(mutex_);
    main_tasks_done_ = number;
    changed_.notify_all();
  });
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || main_tasks_done_ == number; });
    if (main_tasks_done_ == number) return true;
  }
  const std::lock_guard<std::mutex> waited(shared->mutex);
  shared->is_given_up = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  return main_tasks_done_ == number;
}

}  // namespace bellhop
