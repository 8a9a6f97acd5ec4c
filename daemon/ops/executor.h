// Where a completion is run: the one thread crossing back from a store's threads to a session's loop.
#pragma once

#include <functional>

namespace bellhop {

class Executor {
 public:
  virtual ~Executor() = default;
  // Any thread. Runs `task` later on the owner's thread, in the order posted. After the owner closed it,
  // tasks are destroyed unrun.
  virtual void post(std::function<void()> task) = 0;
};

}  // namespace bellhop
