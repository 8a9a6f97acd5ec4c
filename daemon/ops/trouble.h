// Logs repeated trouble once, counts it, and logs when it is over. A client that tries again at once must not
// fill the disk with one warning, and a line that says when the trouble ended helps more than a thousand that
// say it goes on.
//
//   happened ─► told in full ─► again: counted ─► a summary, at most each 30 s ─► quiet for 60 s: forgotten
//                                  └─ over() ─► told to be over, with the count
//
// Trouble that comes and goes is logged at its first coming and its first going. From then on the log says
// every 30 s how it stands.
//
// A trouble is known by its kind and its subject: a store, a queue, a user, a limit, or what
// subject_of_reason() gives. Its line may name what differs each time: a summary has the newest one's fields,
// and how often it happened (times, seconds). Single events (one session opened, one message lost) are logged
// directly.
#pragma once

#include <spdlog/common.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "daemon/ops/log_line.h"

namespace bellhop {

class TroubleBook {
 public:
  using Clock = std::chrono::steady_clock;
  using Write =
      std::function<void(spdlog::level::level_enum level, const std::string& message, const LogFields&)>;

  static constexpr std::chrono::seconds summary_pause{30};
  static constexpr std::chrono::seconds forgotten_after{60};
  static constexpr size_t entries_max = 256;
  static constexpr size_t subject_bytes_max = 256;

  explicit TroubleBook(Write write) : write_(std::move(write)) {}

  // Any thread, like all below.
  void happened(const std::string& kind, const std::string& subject, spdlog::level::level_enum level,
                const std::string& message, const LogFields& fields, Clock::time_point now);
  // Logs `message` (what is right again) if that trouble is known. Cheap while there is no trouble at all, so
  // a caller may ask after each success.
  void over(const std::string& kind, const std::string& subject, const std::string& message,
            const LogFields& fields, Clock::time_point now);
  // Logs what was counted since, and forgets what has been quiet. Call it every few seconds.
  void sum_up(Clock::time_point now);
  // Logs everything counted and not logged yet. For the end of the process.
  void sum_up_all(Clock::time_point now);
  bool is_empty() const { return entries_known_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Entry {
    spdlog::level::level_enum level;
    std::string message;  // the newest, with its fields
    LogFields fields;
    Clock::time_point began, told, last;
    uint64_t count = 0;   // since it began
    uint64_t untold = 0;  // since the last line about it
    bool is_over = false;
    bool was_over = false;     // its end was told at least once
    std::string over_message;  // its end, not told yet
    LogFields over_fields;
  };
  using Entries = std::map<std::pair<std::string, std::string>, Entry>;

  void tell_untold(Entry& entry, Clock::time_point now);
  void tell_over(Entry& entry, Clock::time_point now);
  void erase(Entries::iterator entry);
  void make_room(Clock::time_point now);

  const Write write_;
  std::mutex mutex_;  // entries_
  Entries entries_;
  std::atomic<size_t> entries_known_{0};
};

// Makes a subject of a whole reason: leaves out what differs each time (a claim's key, a port, a size).
std::string subject_of_reason(const std::string& reason);

// The process's own book, which writes to the log. Like spdlog's default logger it is for all threads.
TroubleBook& troubles();

// Kinds that one place logs and another logs as over.
inline constexpr const char* trouble_publish_refused = "publish refused";  // subject, for a store: store 'x'
inline constexpr const char* trouble_delivery_held = "delivery held";
inline constexpr const char* trouble_no_broker = "no broker";
inline constexpr const char* trouble_connection_refused = "connection refused";

// Any thread. In the process's book, now. `kind` is a few words; see TroubleBook.
void tell_trouble(const std::string& kind, const std::string& subject, const std::string& message,
                  const LogFields& fields, spdlog::level::level_enum level = spdlog::level::warn);
inline bool has_trouble() {
  return !troubles().is_empty();
}
void trouble_over(const std::string& kind, const std::string& subject, const std::string& message,
                  const LogFields& fields);

}  // namespace bellhop
