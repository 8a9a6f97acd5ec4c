#include "daemon/ops/waits.h"

#include <mutex>
#include <set>

namespace bellhop {

namespace {

struct All {
  std::mutex mutex;
  std::multiset<std::string> whats;  // under the mutex; a store's former and its present self may both wait
};

All& all() {
  static auto* const kept = new All;  // a store's thread may be the last to end
  return *kept;
}

}  // namespace

void Wait::begin() {
  if (is_on_.exchange(true)) return;
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().whats.insert(what_);
}

bool Wait::over() {
  if (!is_on_.load(std::memory_order_relaxed) || !is_on_.exchange(false)) return false;
  const std::lock_guard<std::mutex> lock(all().mutex);
  if (const auto found = all().whats.find(what_); found != all().whats.end()) all().whats.erase(found);
  return true;
}

std::vector<std::string> what_is_waited_for() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  std::vector<std::string> whats;
  for (const std::string& what : all().whats)
    if (whats.empty() || whats.back() != what) whats.push_back(what);
  return whats;
}

}  // namespace bellhop
