// What bellhop has found missing at its start, and serves without until it comes: for whoever asks how
// bellhop is. The log has told why. As troubles() it is the process's, and for all threads.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace bellhop {

// One thing that may have to be waited for. Any thread, but for its making and its end.
class Wait {
 public:
  explicit Wait(std::string what) : what_(std::move(what)) {}  // as it is shown: `store 'claims'`
  ~Wait() { over(); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  void begin();
  // True: it was waited for until now. One read of memory when it was not, so it may be called at each
  // success.
  bool over();

 private:
  const std::string what_;
  std::atomic<bool> is_on_{false};
};

// All that is waited for now, each once, sorted.
std::vector<std::string> what_is_waited_for();

}  // namespace bellhop
