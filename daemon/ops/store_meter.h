// What a store did, counted: payloads in and out, how long each took, and whether it works at the moment. All
// sessions share a store, so this one has a lock; it is taken once a payload.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "daemon/ops/counter.h"

namespace bellhop {

enum class StoreResult : uint8_t { ok, missing, corrupt, unavailable };
inline constexpr std::array<const char*, 4> store_result_names{"ok", "missing", "corrupt", "unavailable"};
enum class StoreOperation : uint8_t { upload, fetch };
inline constexpr std::array<const char*, 2> store_operation_names{"upload", "fetch"};

struct StoreTotals {
  uint64_t uploads = 0, failed_uploads = 0, uploaded_bytes = 0;
  std::array<uint64_t, store_result_names.size()> fetches{};  // by StoreResult
  std::array<Durations, store_operation_names.size()> durations{};
  bool is_failing = false;  // its last three operations could not be done
};

// Any thread.
class StoreMeter {
 public:
  static constexpr uint32_t failing_after = 3;

  void uploaded(uint64_t bytes, uint64_t ms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.uploads;
    totals_.uploaded_bytes += bytes;
    note(StoreOperation::upload, ms, true);
  }
  void upload_failed(uint64_t ms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.failed_uploads;
    note(StoreOperation::upload, ms, false);
  }
  // A store that says no (missing, corrupt) works.
  void fetched(StoreResult result, uint64_t ms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.fetches[static_cast<size_t>(result)];
    note(StoreOperation::fetch, ms, result != StoreResult::unavailable);
  }
  StoreTotals totals() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return totals_;
  }

 private:
  void note(StoreOperation operation, uint64_t ms, bool done) {
    totals_.durations[static_cast<size_t>(operation)].add(ms);
    failures_in_a_row_ = done ? 0 : failures_in_a_row_ + 1;
    totals_.is_failing = failures_in_a_row_ >= failing_after;
  }

  mutable std::mutex mutex_;
  StoreTotals totals_;
  uint32_t failures_in_a_row_ = 0;
};

}  // namespace bellhop
