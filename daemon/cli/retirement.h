// Retirement: ends what a reload left without a use: stores that nothing needs any more, declarations of a
// former configuration. On a thread of its own, which exists only meanwhile: a store may stand still.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "daemon/broker/control.h"
#include "daemon/claims/store_keeper.h"

namespace bellhop {

// One thread, the main one, but for stop().
class Retirement {
 public:
  // `stores` outlives it.
  explicit Retirement(StoreKeeper& stores) : stores_(stores) {}
  ~Retirement() { stop(); }
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  void retire(std::unique_ptr<Control> control) { controls_.push_back(std::move(control)); }
  // Begins with what there is, unless it is at work. Call it now and then: what is under way in a store may
  // still need it.
  void look();
  // Any thread, when look() is not called any more. Waits for what is under way.
  void stop();

 private:
  StoreKeeper& stores_;
  std::vector<std::unique_ptr<Control>> controls_;
  std::atomic<bool> is_at_work_{false};
  std::thread thread_;
};

}  // namespace bellhop
