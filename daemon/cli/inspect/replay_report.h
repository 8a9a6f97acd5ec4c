// What a replay has done so far: for the line that a person watches, and for the report at its end.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/pipeline/next_stop.h"

namespace bellhop {

class ReplayReport {
 public:
  // `progress` is null when nobody watches. `total` messages may come.
  ReplayReport(std::string queue, uint64_t total, bool dry_run, std::ostream* progress)
      : queue_(std::move(queue)), total_(total), dry_run_(dry_run), progress_(progress) {}

  void sent(const Destination& to);
  void stays(const std::string& message, const std::string& why);
  void passes_over() { ++passed_over_; }
  // Says how far it is, a few times a second; `is_last` ends the line.
  void show_progress(bool is_last);

  uint64_t sent() const { return sent_; }
  uint64_t staying() const { return staying_; }
  void print(std::ostream& out) const;
  nlohmann::ordered_json json() const;

 private:
  struct Staying {
    std::string message, why;
  };
  const std::string queue_;
  const uint64_t total_;
  const bool dry_run_;
  std::ostream* const progress_;
  std::chrono::steady_clock::time_point shown_at_{};
  std::map<std::pair<std::string, std::string>, uint64_t> sent_to_;  // by exchange and key
  std::vector<Staying> listed_;                                      // the first of those that stay
  uint64_t sent_ = 0, staying_ = 0, passed_over_ = 0;
};

}  // namespace bellhop
