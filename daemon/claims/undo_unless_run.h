// Makes a completion safe to lose. A finished upload exists in the store, but nobody knows its key until the
// callback has run. When the callback is destroyed without being run (its Executor was closed, its Upload was
// dropped), the object must go.
#pragma once

#include <functional>
#include <utility>

namespace bellhop {

// Runs `undo` when it is destroyed, unless disarm() was called. Any thread; shared by the copies of one task.
class UndoUnlessRun {
 public:
  explicit UndoUnlessRun(std::function<void()> undo) : undo_(std::move(undo)) {}
  ~UndoUnlessRun() {
    if (undo_) undo_();
  }
  UndoUnlessRun(const UndoUnlessRun&) = delete;
  UndoUnlessRun& operator=(const UndoUnlessRun&) = delete;

  void disarm() { undo_ = nullptr; }

 private:
  std::function<void()> undo_;
};

}  // namespace bellhop
