#include "daemon/cli/retirement.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace bellhop {

namespace {
constexpr std::chrono::milliseconds look_pause{20};
}

Retirement::~Retirement() {
  for (Task& task : tasks_) task.thread.join();
}

void Retirement::begin(const std::function<void()>& work) {
  tasks_.remove_if([](Task& task) {
    if (!task.is_done) return false;
    task.thread.join();
    return true;
  });
  Task& task = tasks_.emplace_back();
  try {
    task.thread = std::thread([&task, work] {
      work();
      task.is_done = true;
    });
  } catch (const std::system_error&) {
    tasks_.pop_back();
    work();  // no thread can be had
  }
}

void Retirement::retire(std::shared_ptr<Control> control) {
  begin([control = std::move(control)] { control->stop(); });
}

void Retirement::look() {
  for (const auto& store : stores_.take_unused()) {
    begin([this, store] {
      store->close();
      stores_.closed(store);
    });
  }
}

bool Retirement::is_over(std::chrono::milliseconds within) const {
  const auto give_up_at = std::chrono::steady_clock::now() + within;
  const auto is_done = [](const Task& task) { return task.is_done.load(); };
  while (!std::all_of(tasks_.begin(), tasks_.end(), is_done)) {
    if (std::chrono::steady_clock::now() >= give_up_at) return false;
    std::this_thread::sleep_for(look_pause);
  }
  return true;
}

}  // namespace bellhop
