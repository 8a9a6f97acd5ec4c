#include "daemon/claims/retention.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/claims/file_names.h"

namespace bellhop {

namespace {

using std::chrono::seconds;

constexpr seconds unfinished_age_max{24 * 60 * 60};
constexpr seconds clock_difference_max{5 * 60};  // of two hosts; more is an error of somebody's

// The right to sweep a directory, from the taking to the destruction.
struct SweepTurn {
  FileDescriptor file;
  time_t now;        // the filesystem's, which may not be this host's
  seconds ahead{0};  // of this host's clock: how far the lock file was dated, when that cannot be
};

Error no_lock(const StorePlace& place, const char* what, int error) {
  return {fmt::format("store '{}': {} {}/{}: {}", place.name, what, place.path, sweep_lock_name,
                      errno_text(error))};
}

Result<std::optional<SweepTurn>> take_turn(const StorePlace& place, const StoreDirectory& directory,
                                           seconds pause) {
  // Other sidecars write to it too, whoever they run as.
  const mode_t mode = 0600 | ((place.mode & 0060) != 0 ? 0060 : 0) | ((place.mode & 0006) != 0 ? 0006 : 0);
  FileDescriptor file(
      openat(directory.fd(), sweep_lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file.is_open()) return no_lock(place, "cannot open", errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<SweepTurn>{};
    return no_lock(place, "cannot lock", errno);
  }
  struct stat before {
  }, after{};
  if (fstat(file.get(), &before) != 0) return no_lock(place, "cannot look at", errno);
  if (before.st_uid == geteuid() && (before.st_mode & 07777) != mode) {
    if (place.group && fchown(file.get(), static_cast<uid_t>(-1), *place.group) != 0)
      return no_lock(place, "cannot set the group of", errno);
    if (fchmod(file.get(), mode) != 0) return no_lock(place, "cannot set the mode of", errno);
  }
  // A date that has not come yet says nothing about the last sweep: else one wrong clock would stop all of
  // them.
  const bool swept_before = before.st_size > 0;
  const seconds ago(swept_before ? ::time(nullptr) - before.st_mtime : 0);
  if (swept_before && std::chrono::abs(ago) < pause) return std::optional<SweepTurn>{};
  const std::string who = fmt::format("swept by process {}\n", getpid());
  if (ftruncate(file.get(), 0) != 0 || write(file.get(), who.data(), who.size()) < 0 ||
      fstat(file.get(), &after) != 0) {
    return no_lock(place, "cannot write", errno);
  }
  return std::optional<SweepTurn>(
      SweepTurn{std::move(file), after.st_mtime, ago < -clock_difference_max ? -ago : seconds(0)});
}

}  // namespace

Result<std::optional<SweepCounts>> sweep_directory(const StorePlace& place, const SweepRule& rule,
                                                   const std::atomic<bool>& stop) {
  const auto directory = StoreDirectory::open(place);
  if (!directory) return Error{directory.error()};
  if (auto marker = directory.value().check_marker(place); !marker) return Error{marker.error()};
  // Who only looks is in nobody's way, and puts off nobody's next sweep.
  Result<std::optional<SweepTurn>> turn =
      std::optional<SweepTurn>(SweepTurn{FileDescriptor(), ::time(nullptr), seconds(0)});
  if (!rule.dry_run) turn = take_turn(place, directory.value(), rule.pause);
  if (!turn) return Error{turn.error()};
  if (!turn.value()) return std::optional<SweepCounts>{};
  const time_t now = turn.value()->now;

  const int listing = openat(directory.value().fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listing < 0 ? nullptr : fdopendir(listing), &closedir);
  if (!entries) {
    const int error = errno;
    if (listing >= 0) ::close(listing);
    return Error{fmt::format("store '{}': cannot list {}: {}", place.name, place.path, errno_text(error))};
  }
  SweepCounts counts;
  counts.lock_ahead = turn.value()->ahead;
  while (const dirent* entry = readdir(entries.get())) {
    if (stop) break;
    const FileKind kind = kind_of_file(entry->d_name);
    if (kind == FileKind::foreign) continue;
    struct stat status {};
    if (fstatat(directory.value().fd(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    const std::optional<seconds> age_max = kind == FileKind::object ? rule.age_max : unfinished_age_max;
    if (!age_max || now - status.st_mtime <= age_max->count()) {
      if (kind == FileKind::object) ++counts.kept;
      if (kind == FileKind::object && status.st_mtime - now > clock_difference_max.count())
        ++counts.dated_ahead;
      continue;
    }
    if (!rule.dry_run && unlinkat(directory.value().fd(), entry->d_name, 0) != 0) {
      if (errno == ENOENT) continue;
      ++counts.failed;
      counts.failure = fmt::format("{}: {}", entry->d_name, errno_text(errno));
      continue;
    }
    if (kind == FileKind::unfinished) {
      ++counts.unfinished;
    } else {
      ++counts.removed;
      counts.removed_bytes += static_cast<uint64_t>(status.st_size);
    }
  }
  return std::optional<SweepCounts>(std::move(counts));
}

std::string problem_of(const StorePlace& place, const SweepCounts& counts) {
  if (counts.failed != 0)
    return fmt::format("store '{}': {} old files could not be removed, the last: {}", place.name,
                       counts.failed, counts.failure);
  if (counts.lock_ahead.count() != 0)
    return fmt::format(
        "store '{}': {}/{} was dated {} s ahead of this host's clock, and was swept all the same: check "
        "the clocks of the hosts that share it",
        place.name, place.path, sweep_lock_name, counts.lock_ahead.count());
  if (counts.dated_ahead != 0)
    return fmt::format(
        "store '{}': {} objects in {} are dated ahead of its clock and stay until their time has come: "
        "`touch` those that shall not",
        place.name, counts.dated_ahead, place.path);
  return {};
}

Retention::Retention(StorePlace place, seconds age_max) : place_(std::move(place)) {
  rule_.age_max = age_max;
  rule_.pause = std::clamp(age_max / 24, seconds(1), seconds(3600));
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Retention::~Retention() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Retention::run() {
  pthread_setname_np(pthread_self(), "retention");
  while (!stop_) {
    sweep();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, rule_.pause, [this] { return stop_.load(); });
  }
}

void Retention::sweep() {
  const auto swept = sweep_directory(place_, rule_, stop_);
  std::string problem;
  if (!swept) {
    problem = swept.error();
  } else if (const auto& counts = swept.value()) {
    if (counts->removed + counts->unfinished != 0) {
      spdlog::info("retention store={} removed={} removed_bytes={} unfinished_removed={} kept={}",
                   place_.name, counts->removed, counts->removed_bytes, counts->unfinished, counts->kept);
    }
    problem = problem_of(place_, *counts);
  }
  if (!problem.empty() && problem != last_problem_) spdlog::warn("retention: {}", problem);
  last_problem_ = problem;
}

}  // namespace bellhop
