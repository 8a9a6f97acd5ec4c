// Decides whose work is next where only so much may run at one time: on a pool's threads, or as requests to a
// service. No session and no kind of work keeps the others waiting:
//
//     line (session 7, write)  [][][][]  ─┐
//     line (session 7, fetch)  []        ─┼─► places: lines take turns, a job each; one that has its share,
//     or line (session 9, write)  []        ─┘   whose kind has, is passed over until a job of it has ended
//
// It has no thread and no lock: the owner's serve.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <utility>

namespace bellhop {

// The kinds of a store's work. fetch: opens an object, and reads a small one whole, or any one over the
// network. verify: a part of a large file. read: a piece of a payload on its way out. upkeep: no session
// waits for it.
enum class Work : uint8_t { upkeep, read, fetch, verify, write };
inline constexpr size_t work_kinds = 5;

// How many jobs may be under way at one time: in all, of one kind, and of one line (an owner and a kind). The
// rest is free for the others at once.
struct Shares {
  size_t all_max;
  size_t one_kind_max;
  size_t one_line_max;
  // For jobs that may last long: a line with nothing under way gets a first place beyond these bounds, as
  // long as fewer than this are under way in all. 0: there are no such places.
  size_t with_first_places_max = 0;
};

template <typename Job>
class Turns {
 public:
  struct Line {
    const void* owner;
    Work work;
    std::deque<Job> jobs;
    size_t running = 0;
  };
  struct Taken {
    const void* owner;
    Work work;
    Job job;
  };

  explicit Turns(Shares shares) : shares_(shares) {}

  // `owner` says who waits for the job and is only compared: a session's executor, or null.
  const Line& push_back(const void* owner, Work work, Job job) {
    Line& line = line_of(owner, work);
    line.jobs.push_back(std::move(job));
    ++queued_;
    return line;
  }
  // Before what waits in its line, and behind one job of each other line.
  const Line& push_front(const void* owner, Work work, Job job) {
    Line& line = line_of(owner, work);
    line.jobs.push_front(std::move(job));
    ++queued_;
    return line;
  }
  // Returns the job that the last push_back() got. Precondition: nothing was called since.
  Job pop_back(const void* owner, Work work) {
    const auto line = find(owner, work);
    Job job = std::move(line->jobs.back());
    line->jobs.pop_back();
    --queued_;
    forget_if_empty(line);
    return job;
  }
  // Removes a job that is queued; does nothing when it is not.
  void erase(const void* owner, Work work, const Job& job) {
    const auto line = find(owner, work);
    if (line == lines_.end()) return;
    queued_ -= std::erase(line->jobs, job);
    forget_if_empty(line);
  }

  // The next job; it counts as under way until ended(). None: no job may run now.
  std::optional<Taken> take() {
    const auto line = next();
    if (line == lines_.end()) return std::nullopt;
    Taken taken{line->owner, line->work, std::move(line->jobs.front())};
    line->jobs.pop_front();
    --queued_;
    ++running_;
    ++running_of_kind(line->work);
    ++line->running;
    lines_.splice(lines_.end(), lines_, line);  // the others are before it now
    return taken;
  }
  // A job that take() gave.
  void ended(const void* owner, Work work) {
    const auto line = find(owner, work);
    --running_;
    --running_of_kind(work);
    --line->running;
    forget_if_empty(line);
  }

  bool has_next() { return queued_ != 0 && next() != lines_.end(); }
  bool may_run(const Line& line) const {
    if (line.jobs.empty()) return false;
    if (line.running == 0 && running_ < shares_.with_first_places_max) return true;
    return running_ < shares_.all_max && line.running < shares_.one_line_max &&
           running_of_kinds_[static_cast<size_t>(line.work)] < shares_.one_kind_max;
  }
  size_t queued() const { return queued_; }
  size_t running() const { return running_; }

 private:
  using Place = typename std::list<Line>::iterator;

  Place find(const void* owner, Work work) {
    return std::find_if(lines_.begin(), lines_.end(),
                        [owner, work](const Line& line) { return line.owner == owner && line.work == work; });
  }
  Line& line_of(const void* owner, Work work) {
    const auto found = find(owner, work);
    return found != lines_.end() ? *found : lines_.emplace_back(Line{owner, work, {}, 0});
  }
  Place next() {
    return std::find_if(lines_.begin(), lines_.end(), [this](const Line& line) { return may_run(line); });
  }
  void forget_if_empty(Place line) {
    if (line->running == 0 && line->jobs.empty()) lines_.erase(line);
  }
  size_t& running_of_kind(Work work) { return running_of_kinds_[static_cast<size_t>(work)]; }

  const Shares shares_;
  std::list<Line> lines_;  // those with jobs, queued or under way; whose turn it is comes first
  std::array<size_t, work_kinds> running_of_kinds_{};
  size_t queued_ = 0, running_ = 0;
};

}  // namespace bellhop
