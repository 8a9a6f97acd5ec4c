// Counters of events: one thread adds, any thread reads. An addition is a plain load and store, without a
// lock prefix, so that a session can count each message.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace bellhop {

class Counter {
 public:
  // The one thread that writes it.
  void add(uint64_t count = 1) { set(value() + count); }
  void subtract(uint64_t count = 1) { set(value() - count); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  // Any thread.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// One of what a counter says there is now, as long as this lives.
class CountLease {
 public:
  CountLease() = default;
  explicit CountLease(Counter& counter) : counter_(&counter) { counter.add(); }
  CountLease(CountLease&& other) noexcept : counter_(std::exchange(other.counter_, nullptr)) {}
  CountLease& operator=(CountLease&& other) noexcept {
    end();
    counter_ = std::exchange(other.counter_, nullptr);
    return *this;
  }
  ~CountLease() { end(); }
  // Again is harmless.
  void end() {
    if (counter_ != nullptr) std::exchange(counter_, nullptr)->subtract();
  }

 private:
  Counter* counter_ = nullptr;
};

// How long something took, sorted into buckets: what a histogram is made of. Plain values.
struct Durations {
  // Upper bounds in ms; a last bucket has all that took longer.
  static constexpr std::array<uint32_t, 14> bounds_ms{1,   2,   5,    10,   20,   50,    100,
                                                      200, 500, 1000, 2000, 5000, 10000, 30000};
  static constexpr size_t bucket_count = bounds_ms.size() + 1;

  static constexpr size_t bucket_of(uint64_t ms) {
    size_t bucket = 0;
    while (bucket < bounds_ms.size() && ms > bounds_ms[bucket]) ++bucket;
    return bucket;
  }

  void add(uint64_t ms) {
    ++buckets[bucket_of(ms)];
    sum_ms += ms;
  }
  uint64_t count() const {
    uint64_t all = 0;
    for (const uint64_t each : buckets) all += each;
    return all;
  }

  std::array<uint64_t, bucket_count> buckets{};  // each with what fell into it alone
  uint64_t sum_ms = 0;
};

// The same, counted by one thread and read by any.
class DurationCounters {
 public:
  // `count` times the same.
  void add(uint64_t ms, uint64_t count = 1) {
    buckets_[ms < quick.size() ? quick[ms] : Durations::bucket_of(ms)].add(count);
    sum_ms_.add(ms * count);
  }
  void add_to(Durations& sum) const {
    for (size_t i = 0; i < buckets_.size(); ++i) sum.buckets[i] += buckets_[i].value();
    sum.sum_ms += sum_ms_.value();
  }

 private:
  // The bucket of what took less than 64 ms, which is nearly everything.
  static constexpr std::array<uint8_t, 64> quick = [] {
    std::array<uint8_t, 64> out{};
    for (size_t ms = 0; ms < out.size(); ++ms) out[ms] = static_cast<uint8_t>(Durations::bucket_of(ms));
    return out;
  }();

  std::array<Counter, Durations::bucket_count> buckets_;
  Counter sum_ms_;
};

}  // namespace bellhop
