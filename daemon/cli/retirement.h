// Retirement: ends what a reload left without a use: stores that nothing needs any more, and declarations of
// a former configuration. Each on a thread of its own, which exists only meanwhile: one that stands still
// holds up no other.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "daemon/broker/control.h"
#include "daemon/claims/store_keeper.h"

namespace bellhop {

// One thread, the main one, but for is_over().
class Retirement {
 public:
  // `stores` outlives it.
  explicit Retirement(StoreKeeper& stores) : stores_(stores) {}
  // Waits for what is under way.
  ~Retirement();
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  void retire(std::shared_ptr<Control> control);
  // Begins with the stores that nobody else has any more. Call it now and then.
  void look();
  // Any thread, when nothing is begun any more. False: after so long something was still under way.
  bool is_over(std::chrono::milliseconds within) const;

 private:
  struct Task {
    std::atomic<bool> is_done{false};
    std::thread thread;
  };
  void begin(const std::function<void()>& work);

  StoreKeeper& stores_;
  std::list<Task> tasks_;
};

}  // namespace bellhop
