#include "daemon/ops/taps.h"

#include <utility>

namespace bellhop {

TapRing::TapRing() : cells_(new Cell[lines_max]) {
  static_assert((lines_max & (lines_max - 1)) == 0, "positions wrap by a mask");
  for (size_t i = 0; i < lines_max; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
}

// A cell at position p is free for the writer whose turn is p, and full for the reader at p + 1.
bool TapRing::push(uint64_t generation, std::string line) {
  size_t at = tail_.load(std::memory_order_relaxed);
  while (true) {
    Cell& cell = cells_[at & (lines_max - 1)];
    const size_t turn = cell.turn.load(std::memory_order_acquire);
    if (turn == at) {
      if (!tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
      cell.generation = generation;
      cell.line.swap(line);
      cell.turn.store(at + 1, std::memory_order_release);
      return true;
    }
    if (turn < at) return false;  // its line of the round before was not read
    at = tail_.load(std::memory_order_relaxed);
  }
}

bool TapRing::pop(uint64_t& generation, std::string& line) {
  Cell& cell = cells_[head_ & (lines_max - 1)];
  if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;
  generation = cell.generation;
  line = std::exchange(cell.line, {});
  cell.turn.store(head_ + lines_max, std::memory_order_release);
  ++head_;
  return true;
}

Taps::~Taps() {
  for (Slot& slot : slots_) delete slot.ring.load(std::memory_order_relaxed);
}

void Taps::tell(std::string_view route, const std::string& line) {
  for (Slot& slot : slots_) {
    const uint64_t generation = slot.generation.load(std::memory_order_acquire);
    if (generation == 0) continue;
    const std::string* const wanted = slot.route.load(std::memory_order_relaxed);
    if (wanted != nullptr && *wanted != route) continue;
    if (!slot.ring.load(std::memory_order_relaxed)->push(generation, line))
      slot.missed.fetch_add(1, std::memory_order_relaxed);
  }
}

std::unique_ptr<Taps::Tap> Taps::begin(std::string_view route) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < taps_max; ++i) {
    if (std::exchange(taken_[i], true)) continue;
    Slot& slot = slots_[i];
    if (slot.ring.load(std::memory_order_relaxed) == nullptr) slot.ring.store(new TapRing);
    slot.route = route.empty() ? nullptr : &*routes_.emplace(route).first;
    slot.missed = 0;
    const uint64_t generation = ++generations_;
    slot.generation.store(generation, std::memory_order_release);
    on_.fetch_add(1, std::memory_order_relaxed);
    return std::unique_ptr<Tap>(new Tap(*this, i, generation));
  }
  return nullptr;
}

Taps::Tap::~Tap() {
  Slot& slot = taps_.slots_[slot_];
  slot.generation = 0;
  taps_.on_.fetch_sub(1, std::memory_order_relaxed);
  std::string line;
  while (next(line)) {
  }
  const std::lock_guard<std::mutex> lock(taps_.mutex_);
  taps_.taken_[slot_] = false;
}

bool Taps::Tap::next(std::string& line) {
  TapRing& ring = *taps_.slots_[slot_].ring.load(std::memory_order_relaxed);
  uint64_t generation = 0;
  while (ring.pop(generation, line)) {
    if (generation == generation_) return true;
  }
  return false;
}

uint64_t Taps::Tap::take_missed() {
  return taps_.slots_[slot_].missed.exchange(0, std::memory_order_relaxed);
}

}  // namespace bellhop
