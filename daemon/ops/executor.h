// Where a completion runs: on the loop of the session that asked. A store's threads hand their results over
// here, and nowhere else.
#pragma once

#include <functional>

namespace bellhop {

class Executor {
 public:
  virtual ~Executor() = default;
  // Any thread. Runs `task` later on the owner's thread, in the order of the posts. Once the owner has closed
  // it, tasks are destroyed without being run.
  virtual void post(std::function<void()> task) = 0;
};

}  // namespace bellhop
