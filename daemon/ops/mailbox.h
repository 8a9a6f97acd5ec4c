// Work posted from any thread to the one thread that runs a loop: how completions of a store's threads, and
// words from the main thread, reach a session. The only lock between threads of the daemon that a session
// ever takes, and it is held for a vector's push or swap.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/ops/executor.h"
#include "proto/result.h"

namespace bellhop {

class Mailbox : public Executor {
 public:
  // On the loop's thread. The mailbox keeps the loop alive, and itself, until close(). `after` runs after
  // each batch of tasks.
  static Result<std::shared_ptr<Mailbox>> open(uv_loop_t* loop, std::function<void()> after = {});

  // Any thread, at any time while the caller holds the shared_ptr, also after the loop is gone. Wakes the
  // loop at most once a batch.
  void post(std::function<void()> task) override;
  // The loop's thread, also from inside a task. Tasks that wait, and later ones, are destroyed unrun, outside
  // of the lock. `closed` is called from the loop once libuv has let go. A second close is ignored.
  void close(std::function<void()> closed = {});

 private:
  struct Handle;
  Mailbox() = default;
  void run_posted();

  std::function<void()> after_;  // the loop's thread
  Handle* handle_ = nullptr;     // the loop's thread, and others under the lock
  std::mutex mutex_;
  bool open_ = true;                            // under the lock
  std::vector<std::function<void()>> posted_;   // under the lock
  std::vector<std::function<void()>> running_;  // the loop's thread; kept for its capacity
  bool closed_ = false;                         // the loop's thread
};

}  // namespace bellhop
