#include "daemon/claims/filesystem/retention.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/claims/filesystem/file_names.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/log_line.h"

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

Error no_lock(const StorePlace& place, const std::string& why) {
  return {fmt::format("store '{}': {}/{}: {}", place.name, place.path, sweep_lock_name, why)};
}

bool is_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT;
}

// Some network mounts have no locks.
bool has_no_locks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

// Other sidecars write to it too, whoever they run as. A mount that sets no modes gives it its own.
void open_to_others(const StorePlace& place, int fd, const struct stat& status) {
  const mode_t mode = 0600 | ((place.mode & 0060) != 0 ? 0060 : 0) | ((place.mode & 0006) != 0 ? 0006 : 0);
  if (status.st_uid != geteuid() || (status.st_mode & 07777) == mode) return;
  if (place.group && fchown(fd, static_cast<uid_t>(-1), *place.group) != 0) return;
  (void)fchmod(fd, mode);
}

// Gives it this moment's time. That needs no room: what a sweep frees may be what the disk lacks.
int mark_swept(int fd) {
  const std::string who = fmt::format("swept by process {}\n", getpid());
  const auto size = static_cast<off_t>(who.size());
  if (pwrite(fd, who.data(), who.size(), 0) < 0 && !is_full_disk(errno)) return errno;
  return ftruncate(fd, size) == 0 ? 0 : errno;
}

Result<std::optional<SweepTurn>> take_turn(const StorePlace& place, const StoreDirectory& directory,
                                           seconds pause) {
  FileDescriptor file(
      openat(directory.fd(), sweep_lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    // Not even an empty file can be made. Two that sweep at once do no harm.
    if (is_full_disk(errno))
      return std::optional<SweepTurn>(SweepTurn{FileDescriptor(), ::time(nullptr), seconds(0)});
    return no_lock(place, "cannot be opened: " + errno_text(errno));
  }
  struct stat before {
  }, after{};
  if (fstat(file.get(), &before) != 0) return no_lock(place, "cannot be looked at: " + errno_text(errno));
  // Whoever may link files into the directory would have another file of bellhop's overwritten by this name.
  if (!S_ISREG(before.st_mode) || before.st_nlink > 1)
    return no_lock(place, "is not bellhop's lock but a hard link or no regular file: remove it");
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<SweepTurn>{};
    if (!has_no_locks(errno)) return no_lock(place, "cannot be locked: " + errno_text(errno));
  }
  open_to_others(place, file.get(), before);
  // A date that has not come yet says nothing about the last sweep: else one wrong clock would stop all of
  // them.
  const bool swept_before = before.st_size > 0;
  const seconds ago(swept_before ? ::time(nullptr) - before.st_mtime : 0);
  if (swept_before && std::chrono::abs(ago) < pause) return std::optional<SweepTurn>{};
  int error = mark_swept(file.get());
  if (error == 0 && fstat(file.get(), &after) != 0) error = errno;
  if (error != 0) return no_lock(place, "cannot be written: " + errno_text(error));
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

  const auto entries = directory.value().list();
  if (!entries)
    return Error{fmt::format("store '{}': cannot list {}: {}", place.name, place.path, errno_text(errno))};
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
        "store '{}': {}/{} was dated {} s ahead of this host's clock, bellhop swept all the same: compare "
        "the clocks of the hosts that share it",
        place.name, place.path, sweep_lock_name, counts.lock_ahead.count());
  if (counts.dated_ahead != 0)
    return fmt::format(
        "store '{}': {} objects in {} are dated ahead of its clock, so bellhop keeps them for longer: "
        "`touch` them to have them removed in time",
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

void Retention::end() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

Retention::~Retention() {
  end();
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
      log_info("retention", {{"store", place_.name},
                             {"removed", counts->removed},
                             {"removed_bytes", counts->removed_bytes},
                             {"unfinished_removed", counts->unfinished},
                             {"kept", counts->kept}});
    }
    problem = problem_of(place_, *counts);
  }
  if (!problem.empty() && problem != last_problem_)
    log_warn("retention failed", {{"store", place_.name}, {"reason", problem}});
  last_problem_ = problem;
}

}  // namespace bellhop
