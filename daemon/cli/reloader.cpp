#include "daemon/cli/reloader.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "daemon/cli/make_snapshot.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

Reloader::Reloader(std::string file, const CurrentSnapshot& current, Meter& meter, ReloadState& state,
                   std::shared_ptr<Mailbox> mailbox, Use use)
    : file_(std::move(file)),
      current_(current),
      meter_(meter),
      state_(state),
      mailbox_(std::move(mailbox)),
      use_(std::move(use)) {}

Reloader::~Reloader() {
  stop();
}

uint64_t Reloader::request() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return 0;
  ask(false);
  return looks_begun_ + 1;
}

void Reloader::request_if_changed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stopping_) ask(true);
}

// Under the mutex.
void Reloader::ask(bool only_if_changed) {
  (only_if_changed ? is_look_wanted_ : is_wanted_) = true;
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread(&Reloader::run, this);
  } catch (const std::system_error& error) {
    is_wanted_ = is_look_wanted_ = false;
    state_.failed({file_ + ": cannot be read again: no thread can be started: " + error.what()});
    state_.looked(++looks_begun_);
  }
}

void Reloader::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
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
    lock.unlock();
    look(only_if_changed);
    state_.looked(number);
    lock.lock();
  }
}

void Reloader::look(bool only_if_changed) {
  config::Loaded loaded = config::load_file(file_);
  const auto before = current_.get();
  std::vector<std::string> errors = std::move(loaded.errors);
  if (errors.empty()) errors = what_needs_restart(*before->config, loaded.config, file_);
  if (only_if_changed && (errors.empty() ? loaded.config == *before->config : errors == last_errors_)) {
    on_main_thread([this, files = std::move(loaded.files)] { use_.note_files(files); });
    last_errors_ = std::move(errors);
    return;
  }
  std::shared_ptr<const Snapshot> snapshot;
  if (errors.empty()) {
    auto made =
        make_snapshot(std::make_shared<const config::Config>(std::move(loaded.config)), meter_, before.get());
    if (made)
      snapshot = std::move(made.value());
    else
      errors.push_back(file_ + ": " + made.error());
  }
  last_errors_ = errors;
  if (snapshot == nullptr) {
    for (const std::string& error : errors) log_error(error);
    log_error("configuration not reloaded: the one before stays in use", {{"number", before->generation}});
    on_main_thread([this, files = std::move(loaded.files)] { use_.note_files(files); });
    state_.failed(std::move(errors));
    return;
  }
  for (const std::string& warning : loaded.warnings) log_warn(warning);
  const uint64_t generation = snapshot->generation;
  if (!on_main_thread([this, snapshot = std::move(snapshot), files = std::move(loaded.files)] {
        use_.put_to_use(snapshot);
        use_.note_files(files);
      }))
    return;
  log_info("configuration reloaded", {{"number", generation}});
  state_.succeeded(generation, std::move(loaded.warnings), std::chrono::system_clock::now());
}

// Waits until it was run. False: stop() was called, and nobody may run it any more.
bool Reloader::on_main_thread(std::function<void()> task) {
  const uint64_t number = ++main_tasks_;
  mailbox_->post([this, number, task = std::move(task)] {
    task();
    const std::lock_guard<std::mutex> lock(mutex_);
    main_tasks_done_ = number;
    changed_.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || main_tasks_done_ == number; });
  return main_tasks_done_ == number;
}

}  // namespace bellhop
