// Shares one fsync of a directory among all files that were linked into it at about the same time. A caller
// that comes while two syncs are under way waits for the next one, together with all others. That one begins
// after they have linked their files, so it covers them. Two syncs may run at once: a filesystem with a
// journal shares its commits by itself, and a single sync would only add to the wait.
//
//     a links ─► sync ════════════════╗
//     b links ───► sync ══════════════║════╗
//     c links ────────── waits ───────╫─► sync (one of the two does it) ══► c and d go on
//     d links ───────────── waits ────╝
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "proto/result.h"

namespace bellhop {

class SharedSync {
 public:
  // A directory: device and inode. Only callers that name the same one share a sync.
  using Place = std::pair<uint64_t, uint64_t>;

  // Any thread that may block. Returns when a sync of `place` that began after this call has ended, with its
  // outcome. One of the waiting callers runs `sync`.
  Result<void> run(Place place, const std::function<Result<void>()>& sync);
  // Any thread. How many wait for a sync that has not begun.
  size_t waiting() const;

 private:
  struct Group {
    Place place;
    bool has_begun = false, is_done = false;
    Result<void> outcome;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Group> gathering_;  // whose sync has not begun
  size_t running_ = 0, waiting_ = 0;
};

}  // namespace bellhop
