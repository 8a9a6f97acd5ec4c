// Reloader: reads the configuration again while bellhop runs. All or nothing: what is wrong with it changes
// nothing.
//
//   request ─► its thread: read, check, open what is new, declare what is new ─► main thread: put to use
//
// Requests that come meanwhile become one more look. Its thread begins with the first request, because a file
// or a store's place may stand still.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/load.h"
#include "daemon/broker/control.h"
#include "daemon/ops/mailbox.h"
#include "daemon/ops/meter.h"
#include "daemon/ops/reload_state.h"
#include "daemon/snapshot/snapshot.h"

namespace bellhop {

class Reloader {
 public:
  struct Next {
    std::shared_ptr<const Snapshot> snapshot;
    std::shared_ptr<Control> control;  // null: the one before serves
  };
  struct Use {
    // The main thread. From here on this one is in use. False: bellhop ends, and it is not.
    std::function<bool(const Next&)> put_to_use;
    // The main thread. After each look: the files that were read, or should have been.
    std::function<void(const std::vector<std::string>& files)> note_files;
    // The main thread. A reload begins, and is over, however it went. A look that found nothing new is none.
    std::function<void()> begins, is_over;
    Control::Saw saw_broker;
  };
  // `mailbox` is the main loop's. What is referred to outlives the reloader.
  Reloader(std::string file, const CurrentSnapshot& current, Meter& meter, ReloadState& state,
           std::shared_ptr<Mailbox> mailbox, Use use);
  // Waits for the look under way.
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // Any thread. Returns the number of the look (ReloadView::looks) that will see what is there now. 0: stop()
  // was called.
  uint64_t request();
  // Any thread. Looks, and reloads if something is other than at the last look.
  void request_if_changed();
  // Any thread. Nothing is looked at any more. False: a look is still under way after so long; it may stand
  // still as a store does.
  bool stop(std::chrono::milliseconds within);

 private:
  uint64_t ask(bool only_if_changed);
  void run();
  void look(bool only_if_changed);
  void tell_begin();
  void fail(std::vector<std::string> errors, bool only_if_changed, uint64_t stays);
  std::shared_ptr<Control> declare(const Snapshot& before, const Snapshot& next);
  bool on_main_thread(const std::function<void()>& task);
  bool is_stopping();

  const std::string file_;
  const CurrentSnapshot& current_;
  Meter& meter_;
  ReloadState& state_;
  const std::shared_ptr<Mailbox> mailbox_;
  const Use use_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // All under the mutex.
  bool stopping_ = false;
  bool is_wanted_ = false, is_look_wanted_ = false;
  uint64_t looks_begun_ = 0;
  bool is_at_work_ = false;
  uint64_t main_tasks_done_ = 0;
  std::thread thread_;

  std::vector<std::string> last_errors_;  // its thread
  bool is_begin_told_ = false;            // its thread
  uint64_t main_tasks_ = 0;               // its thread
};

}  // namespace bellhop
