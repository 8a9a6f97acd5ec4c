// Pending: one thing that a channel's end waits for (a hop, a park), counted while it lives. It may outlive
// its channel. One thread (the session's).
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace bellhop {

class Pending {
 public:
  using Count = std::shared_ptr<size_t>;

  Pending() = default;
  explicit Pending(Count count) : count_(std::move(count)) { ++*count_; }
  ~Pending() { end(); }
  Pending(Pending&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Pending& operator=(Pending&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  void end() {
    if (count_ != nullptr) --*count_;
    count_.reset();
  }

 private:
  Count count_;
};

}  // namespace bellhop
