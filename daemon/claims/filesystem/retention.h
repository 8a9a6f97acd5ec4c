// Removes objects older than the configured age from a filesystem store. Of all sidecars that share the
// directory, one at a time does it.
//
//     lock file `.bellhop-sweep` ── held by another, or swept a short while ago ──► nothing to do
//          │ flock
//          ▼ its new time is the filesystem's own "now"
//     every regular file whose name is an issued key and whose time of writing is older ──► unlink
//     unfinished files (file_names.h) older than 24 h ──► unlink
//
// It touches nothing else in the directory, and nothing younger.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "daemon/claims/filesystem/store_directory.h"

namespace bellhop {

struct SweepRule {
  std::optional<std::chrono::seconds> age_max;  // of objects; unset: only unfinished files are removed
  std::chrono::seconds pause{0};                // a directory that was swept so recently is left alone
  bool dry_run = false;                         // counts, and removes nothing
};

struct SweepCounts {
  uint64_t removed = 0, removed_bytes = 0;  // objects
  uint64_t unfinished = 0;
  uint64_t kept = 0;    // objects that are younger
  uint64_t failed = 0;  // could not be removed; `failure` says why, of the last
  std::string failure;
  // A clock was wrong somewhere. bellhop does not believe such a lock file. Such objects are part of `kept`,
  // and not too old yet.
  uint64_t dated_ahead = 0;
  std::chrono::seconds lock_ahead{0};
};

// Blocking; any thread. Sweeps once. Nothing: another process sweeps the directory now, or did within
// `pause`. Errors: the store is unavailable, or the lock file cannot be written. Ends early when `stop`
// becomes true.
Result<std::optional<SweepCounts>> sweep_directory(const StorePlace& place, const SweepRule& rule,
                                                   const std::atomic<bool>& stop);

// What an operator must know of a sweep; empty when there is nothing.
std::string problem_of(const StorePlace& place, const SweepCounts& counts);

// Sweeps a directory again and again on a thread of its own, from construction to destruction. An object
// outlives its age by a twenty-fourth of it or by an hour, whichever is shorter.
class Retention {
 public:
  Retention(StorePlace place, std::chrono::seconds age_max);
  // Ends it without waiting. Again is harmless.
  void end();
  // Waits for a system call under way.
  ~Retention();
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

 private:
  void run();
  void sweep();

  const StorePlace place_;
  SweepRule rule_;
  std::atomic<bool> stop_ = false;
  std::string last_problem_;  // logged once, until it goes away
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

inline constexpr char sweep_lock_name[] = ".bellhop-sweep";

}  // namespace bellhop
