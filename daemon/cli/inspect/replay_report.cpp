#include "daemon/cli/inspect/replay_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "daemon/cli/inspect/field_json.h"
#include "daemon/cli/inspect/words.h"

namespace bellhop {

namespace {

constexpr size_t listed_max = 1000;
constexpr std::chrono::milliseconds progress_every{200};

std::string in_words(const std::pair<std::string, std::string>& to) {
  if (to.first.empty()) return fmt::format("queue '{}'", printable(to.second));
  return fmt::format("exchange '{}', routing key '{}'", printable(to.first), printable(to.second));
}

}  // namespace

void ReplayReport::sent(const Destination& to) {
  ++sent_;
  ++sent_to_[{to.exchange, to.routing_key}];
}

void ReplayReport::stays(const std::string& message, const std::string& why) {
  ++staying_;
  if (listed_.size() < listed_max) listed_.push_back({message, why});
}

void ReplayReport::show_progress(bool is_last) {
  if (progress_ == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (!is_last && now - shown_at_ < progress_every) return;
  shown_at_ = now;
  *progress_ << fmt::format("\r{} of {}: {} {}, {} stay{}", sent_ + staying_ + passed_over_, total_, sent_,
                            dry_run_ ? "would be replayed" : "replayed", staying_ + passed_over_,
                            is_last ? "\n" : "")
             << std::flush;
}

void ReplayReport::print(std::ostream& out) const {
  out << fmt::format("{} {}\n", counted(sent_, "message"), dry_run_ ? "would be replayed" : "replayed");
  for (const auto& [to, count] : sent_to_) out << fmt::format("  {} to {}\n", count, in_words(to));
  if (staying_ > 0) {
    out << fmt::format("{} {} in '{}':\n", counted(staying_, "message"),
                       dry_run_        ? "would stay"
                       : staying_ == 1 ? "stays"
                                       : "stay",
                       printable(queue_));
    for (const Staying& each : listed_)
      out << fmt::format("  {}: {}\n", each.message, printable(each.why, 1000));
    if (staying_ > listed_.size()) out << fmt::format("  and {} more\n", staying_ - listed_.size());
  }
  if (passed_over_ > 0)
    out << fmt::format("{} without the header of --match\n", counted(passed_over_, "message"));
}

nlohmann::ordered_json ReplayReport::json() const {
  using Json = nlohmann::ordered_json;
  Json out{{"queue", queue_}, {"dry_run", dry_run_}, {"replayed", sent_}, {"destinations", Json::array()}};
  for (const auto& [to, count] : sent_to_)
    out["destinations"].push_back(
        {{"exchange", json_text(to.first)}, {"routing_key", json_text(to.second)}, {"messages", count}});
  out["staying"] = staying_;
  out["stay"] = Json::array();
  for (const Staying& each : listed_)
    out["stay"].push_back({{"message", json_text(each.message)}, {"reason", json_text(each.why)}});
  out["without_match"] = passed_over_;
  return out;
}

}  // namespace bellhop
