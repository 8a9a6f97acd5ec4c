#include "daemon/cli/sweep.h"

#include "config/load.h"
#include "config/units.h"
#include "daemon/cli/sweep_filesystem.h"
#include "daemon/cli/sweep_s3.h"

namespace bellhop {

namespace {

constexpr uint64_t unfinished_age_ms = 24 * 60 * 60 * 1000;

// One function a kind of store.
class Sweeper {
 public:
  Sweeper(const std::string& name, std::optional<uint64_t> older_than_ms, bool dry_run, std::ostream& out,
          std::ostream& err)
      : name_(name), older_than_ms_(older_than_ms), dry_run_(dry_run), out_(out), err_(err) {}

  int operator()(const config::S3Store& store) const {
    return sweep_s3(name_, store, older_than_ms_.value_or(unfinished_age_ms), dry_run_, out_, err_);
  }
  int operator()(const config::FilesystemStore& store) const {
    return sweep_filesystem(name_, store, older_than_ms_, dry_run_, out_, err_);
  }
  int operator()(const config::MemoryStore&) const {
    err_ << "bellhop: store '" << name_ << "' is a memory store, which this command does not sweep\n";
    return 2;
  }

 private:
  const std::string& name_;
  const std::optional<uint64_t> older_than_ms_;
  const bool dry_run_;
  std::ostream& out_;
  std::ostream& err_;
};

}  // namespace

int sweep(const std::string& config_file, const std::string& store_name, const SweepOptions& options,
          std::ostream& out, std::ostream& err) {
  std::optional<uint64_t> older_than_ms;
  if (options.older_than) {
    const Result<uint64_t> time = config::parse_time_ms(*options.older_than);
    if (!time) {
      err << "bellhop: --older-than: '" << *options.older_than << "' " << time.error() << '\n';
      return 2;
    }
    older_than_ms = time.value();
  }
  const config::Loaded loaded = config::load_file(config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return 2;
  for (const config::Store& store : loaded.config.stores) {
    if (store.name == store_name)
      return std::visit(Sweeper(store_name, older_than_ms, options.dry_run, out, err), store.kind);
  }
  err << "bellhop: " << config_file << " has no store '" << store_name << "'\n";
  return 2;
}

}  // namespace bellhop
