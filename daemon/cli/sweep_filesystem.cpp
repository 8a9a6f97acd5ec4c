#include "daemon/cli/sweep_filesystem.h"

#include "config/units.h"
#include "daemon/claims/filesystem/filesystem_store.h"
#include "daemon/claims/filesystem/retention.h"

namespace bellhop {

int sweep_filesystem(const std::string& name, const config::FilesystemStore& store,
                     std::optional<uint64_t> older_than_ms, bool dry_run, std::ostream& out,
                     std::ostream& err) {
  const auto place = FilesystemStore::place_of(name, store);
  if (!place) {
    err << place.error() << '\n';
    return 1;
  }
  if (!older_than_ms) older_than_ms = store.retention_ms;
  SweepRule rule;
  rule.dry_run = dry_run;
  if (older_than_ms) rule.age_max = std::chrono::seconds(*older_than_ms / 1000);
  const std::atomic<bool> stop = false;
  const auto swept = sweep_directory(place.value(), rule, stop);
  if (!swept) {
    err << swept.error() << '\n';
    return 1;
  }
  if (!swept.value()) {
    err << "store '" << name << "': another bellhop sweeps " << store.path << " at this moment\n";
    return 1;
  }
  const SweepCounts& counts = *swept.value();
  const char* const done = dry_run ? " would be removed" : " removed";
  out << "store '" << name << "', " << store.path << ": ";
  if (older_than_ms)
    out << counts.removed << " objects older than " << config::show_time(*older_than_ms) << " ("
        << counts.removed_bytes << " bytes)" << done << ", ";
  else
    out << "no retention and no --older-than, so no object is too old, ";
  out << counts.unfinished << " unfinished files" << done << ", " << counts.kept << " objects left\n";
  if (const std::string problem = problem_of(place.value(), counts); !problem.empty()) err << problem << '\n';
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace bellhop
