// Taps: whoever wants to see messages go by, one line each, while bellhop runs. Sessions tell a line to all
// taps and never wait for any; a tap that does not read fast enough misses lines, and knows how many.
//
//   session ─┐
//   session ─┼─► ring of a tap (1,024 lines) ─► next() ─► its reader
//   session ─┘     └ full: the line is missed, and counted
//
// While nobody looks, a message costs one relaxed load (is_on).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace bellhop {

// Lines on their way to one reader. Any number of writers, none of which ever waits (a bounded queue as
// Dmitry Vyukov's: each cell says whose turn it is).
class TapRing {
 public:
  static constexpr size_t lines_max = 1024;

  TapRing();
  // Any thread. False: it is full.
  bool push(uint64_t generation, std::string line);
  // One thread at a time. False: it is empty.
  bool pop(uint64_t& generation, std::string& line);

 private:
  struct Cell {
    std::atomic<size_t> turn{0};
    uint64_t generation = 0;
    std::string line;
  };
  const std::unique_ptr<Cell[]> cells_;
  std::atomic<size_t> tail_{0};
  size_t head_ = 0;  // the reader's
};

class Taps {
 public:
  static constexpr size_t taps_max = 4;

  // One reader's place; ends with it. One thread.
  class Tap {
   public:
    ~Tap();
    Tap(const Tap&) = delete;
    Tap& operator=(const Tap&) = delete;
    // False: there is none now.
    bool next(std::string& line);
    // How many were missed since the last call: those that came when the ring was full.
    uint64_t take_missed();

   private:
    friend class Taps;
    Tap(Taps& taps, size_t slot, uint64_t generation) : taps_(taps), slot_(slot), generation_(generation) {}
    Taps& taps_;
    const size_t slot_;
    const uint64_t generation_;
  };

  Taps() = default;
  ~Taps();
  Taps(const Taps&) = delete;
  Taps& operator=(const Taps&) = delete;

  // Any thread. Somebody looks.
  bool is_on() const { return on_.load(std::memory_order_relaxed) != 0; }
  // Any thread; never waits. To the taps of this route, and to those of all.
  void tell(std::string_view route, const std::string& line);
  // Any thread. `route` is empty for all messages, else one of the configuration's: its name is kept. Null:
  // all places are taken. This outlives the tap.
  std::unique_ptr<Tap> begin(std::string_view route);

 private:
  // A ring, once made, stays: a session that has just seen its tap may still write to it. The generation
  // tells the lines of one tap from those of the tap before it.
  struct Slot {
    std::atomic<uint64_t> generation{0};  // 0: nobody looks
    std::atomic<const std::string*> route{nullptr};
    std::atomic<uint64_t> missed{0};
    std::atomic<TapRing*> ring{nullptr};
  };

  std::atomic<unsigned> on_{0};
  std::array<Slot, taps_max> slots_;
  std::mutex mutex_;  // the three below; sessions never take it
  std::array<bool, taps_max> taken_{};
  uint64_t generations_ = 0;
  std::set<std::string, std::less<>> routes_;  // names that were asked for
};

}  // namespace bellhop
