#include "daemon/cli/config_watch.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

constexpr int links_max = 40;  // as the kernel's

template <typename Handle>
void close_handle(Handle* handle) {
  uv_close(reinterpret_cast<uv_handle_t*>(handle),
           [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
}

}  // namespace

std::set<std::string> directories_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::set<std::string> found;
  std::error_code failed;
  fs::path at = fs::absolute(path, failed);
  const auto note = [&found](const fs::path& directory) {
    std::error_code unknown;
    const fs::path real = fs::weakly_canonical(directory, unknown);
    found.insert(unknown ? directory : real);
  };
  for (int links = 0; links < links_max && !failed; ++links) {
    note(at.parent_path());
    // A part of the path may itself be a link: then that link's directory, and what it leads to.
    const fs::path real = fs::canonical(at.parent_path(), failed);
    if (failed) break;
    for (fs::path part = at.parent_path(); part.has_relative_path(); part = part.parent_path()) {
      std::error_code ignored;
      if (fs::is_symlink(part, ignored)) note(part.parent_path());
    }
    at = real / at.filename();
    if (!fs::is_symlink(at, failed) || failed) break;
    const fs::path target = fs::read_symlink(at, failed);
    if (!failed) at = target.is_absolute() ? target : real / target;
  }
  return found;
}

ConfigWatch::ConfigWatch(uv_loop_t* loop, std::function<void()> look)
    : loop_(loop), look_(std::move(look)), quiet_(new uv_timer_t), minute_(new uv_timer_t) {
  for (uv_timer_t* timer : {quiet_, minute_}) {
    uv_timer_init(loop, timer);
    timer->data = this;
    uv_unref(reinterpret_cast<uv_handle_t*>(timer));
  }
  uv_timer_start(
      minute_, [](uv_timer_t* timer) { static_cast<ConfigWatch*>(timer->data)->look_(); }, minute_ms,
      minute_ms);
}

ConfigWatch::~ConfigWatch() {
  stop_watching();
  close_handle(quiet_);
  close_handle(minute_);
}

void ConfigWatch::stop_watching() {
  for (uv_fs_event_t* event : std::exchange(watched_, {})) close_handle(event);
}

void ConfigWatch::watch(const std::vector<std::string>& files) {
  stop_watching();
  std::set<std::string> directories;
  for (const std::string& file : files) directories.merge(directories_of(file));
  for (const std::string& directory : directories) {
    auto* const event = new uv_fs_event_t;
    uv_fs_event_init(loop_, event);
    event->data = this;
    uv_unref(reinterpret_cast<uv_handle_t*>(event));
    watched_.push_back(event);
    const int failed = uv_fs_event_start(
        event,
        [](uv_fs_event_t* noticed, const char*, int, int) {
          static_cast<ConfigWatch*>(noticed->data)->noticed();
        },
        directory.c_str(), 0);
    // One that is not there now is looked for once a minute.
    if (failed != 0 && failed != UV_ENOENT)
      tell_trouble("folder not watched", directory,
                   "changes in a folder of the configuration are noticed only once a minute",
                   {{"path", directory}, {"reason", uv_strerror(failed)}});
  }
  // What happened between the last read and now had no event.
  if (directories != std::exchange(directories_, directories)) noticed();
}

// Something may be written there all the time: then it is not waited for quiet for ever.
void ConfigWatch::noticed() {
  const uint64_t now = uv_now(loop_);
  if (noticed_at_ms_ == 0) noticed_at_ms_ = now;
  const uint64_t left = noticed_at_ms_ + longest_ms - std::min(now, noticed_at_ms_ + longest_ms);
  uv_timer_start(
      quiet_,
      [](uv_timer_t* timer) {
        auto& self = *static_cast<ConfigWatch*>(timer->data);
        self.noticed_at_ms_ = 0;
        self.look_();
      },
      std::min(quiet_ms, left), 0);
}

}  // namespace bellhop
