// Mailbox: any thread posts work to the one thread that runs a loop. Completions of a store's threads and
// calls of the main thread reach a session this way. Its lock is the only one between threads that a session
// takes, and it is held for a vector's push or swap.
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
  // The loop's thread. The mailbox keeps the loop and itself alive until close(). `after` runs after each
  // batch of tasks. Error: libuv has no handle.
  static Result<std::shared_ptr<Mailbox>> open(uv_loop_t* loop, std::function<void()> after = {});

  // Any thread, as long as the caller holds the shared_ptr, also after the loop is gone. Wakes the loop at
  // most once a batch.
  void post(std::function<void()> task) override;
  // The loop's thread, also inside a task. Waiting and later tasks are destroyed unrun, outside the lock. The
  // loop calls `closed` once libuv has let go. A second close is ignored.
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
