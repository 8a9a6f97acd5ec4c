// A bound that several share: bytes in memory, bytes in scratch files. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace bellhop {

class Room {
 public:
  explicit Room(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // False: it does not fit now.
  bool take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (bytes > bytes_max_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(uint64_t bytes) { used_ -= bytes; }
  uint64_t used_bytes() const { return used_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> used_{0};
};

// A part of a room, given back with its owner. Empty when there was no place for it.
class RoomShare {
 public:
  RoomShare() = default;
  RoomShare(Room& room, uint64_t bytes) {
    if (!room.take(bytes)) return;
    room_ = &room;
    bytes_ = bytes;
  }
  ~RoomShare() {
    if (room_ != nullptr) room_->give_back(bytes_);
  }
  RoomShare(RoomShare&& other) noexcept { *this = std::move(other); }
  RoomShare& operator=(RoomShare&& other) noexcept {
    std::swap(room_, other.room_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  explicit operator bool() const { return room_ != nullptr; }

 private:
  Room* room_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace bellhop
