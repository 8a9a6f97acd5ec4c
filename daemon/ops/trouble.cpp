#include "daemon/ops/trouble.h"

#include <algorithm>

namespace bellhop {

namespace {

int64_t seconds(TroubleBook::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::pair<std::string, std::string> key_of(const std::string& kind, const std::string& subject) {
  return {kind, subject.substr(0, TroubleBook::subject_bytes_max)};
}

}  // namespace

void TroubleBook::happened(const std::string& kind, const std::string& subject,
                           spdlog::level::level_enum level, const std::string& message,
                           const LogFields& fields, Clock::time_point now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto key = key_of(kind, subject);
  auto found = entries_.find(key);
  if (found != entries_.end()) {
    const Entry& old = found->second;
    const bool is_done = old.is_over && old.over_message.empty() && now - old.told >= summary_pause;
    if (is_done || now - old.last > forgotten_after) {
      tell_untold(found->second, now);
      erase(found);
      found = entries_.end();
    }
  }
  if (found == entries_.end()) {
    make_room(now);
    Entry entry;
    entry.level = level;
    entry.began = entry.told = entry.last = now;
    entry.count = 1;
    entries_.emplace(std::move(key), std::move(entry));
    entries_known_.store(entries_.size(), std::memory_order_relaxed);
    write_(level, message, fields);
    return;
  }
  Entry& entry = found->second;
  entry.count++;
  entry.untold++;
  entry.last = now;
  entry.message = message;
  entry.fields = fields;
  entry.is_over = false;
  if (now - entry.told >= summary_pause) tell_untold(entry, now);
}

void TroubleBook::tell_untold(Entry& entry, Clock::time_point now) {
  if (entry.untold == 0) return;
  if (entry.untold > 1)
    entry.fields.add({{"times", entry.untold}, {"seconds", std::max<int64_t>(seconds(now - entry.told), 1)}});
  write_(entry.level, entry.message, entry.fields);
  entry.untold = 0;
  entry.told = now;
}

void TroubleBook::over(const std::string& kind, const std::string& subject, const std::string& message,
                       const LogFields& fields, Clock::time_point now) {
  if (is_empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key_of(kind, subject));
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.is_over) return;
  entry.is_over = true;
  entry.over_message = message;
  entry.over_fields = fields;
  if (!entry.was_over || now - entry.told >= summary_pause) tell_over(entry, now);
}

void TroubleBook::tell_over(Entry& entry, Clock::time_point now) {
  entry.over_fields.add({{"times", entry.count}, {"seconds", seconds(now - entry.began)}});
  write_(spdlog::level::info, entry.over_message, entry.over_fields);
  entry.over_message.clear();
  entry.was_over = true;
  entry.untold = 0;
  entry.told = now;
}

void TroubleBook::sum_up(Clock::time_point now) {
  if (is_empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto each = entries_.begin(); each != entries_.end();) {
    const auto entry = each++;
    if (now - entry->second.told >= summary_pause) {
      if (entry->second.is_over && !entry->second.over_message.empty())
        tell_over(entry->second, now);
      else
        tell_untold(entry->second, now);
    }
    if (entry->second.untold == 0 && now - entry->second.last >= forgotten_after) erase(entry);
  }
}

void TroubleBook::sum_up_all(Clock::time_point now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [key, entry] : entries_) tell_untold(entry, now);
}

void TroubleBook::erase(Entries::iterator entry) {
  entries_.erase(entry);
  entries_known_.store(entries_.size(), std::memory_order_relaxed);
}

// The one that has been quiet longest goes: what is going on stays known.
void TroubleBook::make_room(Clock::time_point now) {
  if (entries_.size() < entries_max) return;
  const auto quietest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return a.second.last < b.second.last;
  });
  tell_untold(quietest->second, now);
  erase(quietest);
}

std::string subject_of_reason(const std::string& reason) {
  std::string out;
  const size_t end = std::min(reason.size(), TroubleBook::subject_bytes_max);
  for (size_t at = 0; at < end;) {
    size_t word_end = at;
    while (word_end < end && (is_hex(reason[word_end]) || (reason[word_end] == '-' && word_end > at)))
      ++word_end;
    const auto word = reason.begin() + static_cast<std::ptrdiff_t>(at);
    const bool has_digit = std::any_of(word, reason.begin() + static_cast<std::ptrdiff_t>(word_end),
                                       [](char c) { return c >= '0' && c <= '9'; });
    if (has_digit) {
      out += '#';
    } else {
      word_end = std::max(word_end, at + 1);
      out.append(reason, at, word_end - at);
    }
    at = word_end;
  }
  return out;
}

TroubleBook& troubles() {
  static TroubleBook book([](spdlog::level::level_enum level, const std::string& message,
                             const LogFields& fields) { log_line(level, message, fields); });
  return book;
}

void tell_trouble(const std::string& kind, const std::string& subject, const std::string& message,
                  const LogFields& fields, spdlog::level::level_enum level) {
  troubles().happened(kind, subject, level, message, fields, TroubleBook::Clock::now());
}

void trouble_over(const std::string& kind, const std::string& subject, const std::string& message,
                  const LogFields& fields) {
  troubles().over(kind, subject, message, fields, TroubleBook::Clock::now());
}

}  // namespace bellhop
