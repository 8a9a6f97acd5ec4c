// TransferSlots: how many uploads and fetches of one session are under way (limits.transfers_per_session).
// One thread (the session's).
#pragma once

#include <cstddef>
#include <utility>

namespace bellhop {

class TransferSlots {
 public:
  // A transfer's place, from its beginning to its end.
  class Slot {
   public:
    Slot() = default;
    ~Slot() { end(); }
    Slot(Slot&& other) noexcept { swap(other); }
    Slot& operator=(Slot&& other) noexcept {
      Slot(std::move(other)).swap(*this);
      return *this;
    }
    // An upload whose last piece came: only its store is awaited, so its place comes back by itself.
    // Precondition: it is active.
    void finish() {
      if (!std::exchange(is_finishing_, true)) slots_->finishing_++;
    }
    void end() {
      if (slots_ == nullptr) return;
      slots_->taken_--;
      if (std::exchange(is_finishing_, false)) slots_->finishing_--;
      slots_ = nullptr;
    }
    bool is_active() const { return slots_ != nullptr; }

   private:
    friend class TransferSlots;
    explicit Slot(TransferSlots& slots) : slots_(&slots) { slots_->taken_++; }
    void swap(Slot& other) noexcept {
      std::swap(slots_, other.slots_);
      std::swap(is_finishing_, other.is_finishing_);
    }
    TransferSlots* slots_ = nullptr;
    bool is_finishing_ = false;
  };

  explicit TransferSlots(size_t slots_max) : slots_max_(slots_max) {}
  TransferSlots(const TransferSlots&) = delete;
  TransferSlots& operator=(const TransferSlots&) = delete;

  bool is_full() const { return taken_ >= slots_max_; }
  // Uploads whose last piece came.
  size_t finishing() const { return finishing_; }
  // Also when it is full: what others wait for may not wait for them.
  Slot take() { return Slot(*this); }

 private:
  const size_t slots_max_;
  size_t taken_ = 0, finishing_ = 0;
};

using TransferSlot = TransferSlots::Slot;

}  // namespace bellhop
