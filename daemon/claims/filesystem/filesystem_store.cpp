#include "daemon/claims/filesystem/filesystem_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "daemon/claims/filesystem/filesystem_fetch.h"
#include "daemon/claims/filesystem/filesystem_upload.h"
#include "daemon/claims/left_behind.h"
#include "daemon/ops/accounts.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/log_line.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

// One session alone may have twelve at work on its uploads, or on its fetches; whoever comes then finds one
// of its own.
constexpr ThreadShares shares{.threads_max = 16, .one_kind_max = 14, .one_line_max = 12};
constexpr int verifying_niceness = 10;

// More than there are processors would only wait for each other, and take the processors from the sessions.
ThreadShares verifying_shares() {
  const size_t count = std::clamp<size_t>(std::thread::hardware_concurrency(), 2, 12);
  return {.threads_max = count, .one_kind_max = count, .one_line_max = count, .niceness = verifying_niceness};
}

Result<std::unique_ptr<FilesystemStore>> begun(Result<std::unique_ptr<FilesystemStore>> made) {
  if (!made) return made;
  made.value()->prepare(true);
  made.value()->begin_upkeep();
  return made;
}

}  // namespace

void remove_object(const std::shared_ptr<FilesystemCore>& core, const std::string& key) {
  auto under_way = std::make_shared<KeyUnderWay>(core->keys_under_way, key);
  core->pool.run(nullptr, Work::upkeep, [place = &core->place, core, key, under_way] {
    if (!proto::is_issued_key(key)) return;
    const auto directory = StoreDirectory::open(*place);
    if (!directory) {
      tell_left_behind(place->name, key, directory.error());
    } else if (unlinkat(directory.value().fd(), key.c_str(), 0) != 0 && errno != ENOENT) {
      tell_left_behind(place->name, key, std::string("unlink: ") + errno_text(errno));
    }
  });
}

Result<StorePlace> FilesystemStore::place_of(const std::string& name, const config::FilesystemStore& config) {
  StorePlace place{.name = name,
                   .path = config.path,
                   .mode = config.mode,
                   .group = {},
                   .fsync = config.fsync,
                   .marker_required = config.marker_required,
                   .unnamed_files = true};
  if (!config.group.empty()) {
    const auto group = group_id(config.group);
    if (!group) return Error{fmt::format("store '{}': group: {}", name, group.error())};
    place.group = group.value();
  }
  return place;
}

Result<std::unique_ptr<FilesystemStore>> FilesystemStore::make(const std::string& name,
                                                               const config::FilesystemStore& config,
                                                               proto::KeyRule keys) {
  auto place = place_of(name, config);
  if (!place) return Error{place.error()};
  return make(std::move(place.value()), keys, config.retention_ms);
}

Result<std::unique_ptr<FilesystemStore>> FilesystemStore::make(StorePlace place, proto::KeyRule keys,
                                                               std::optional<uint64_t> retention_ms) {
  struct stat status {};
  if (::stat(place.path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
    return Error{fmt::format("store '{}': {} is not a directory", place.name, place.path)};
  return std::unique_ptr<FilesystemStore>(new FilesystemStore(std::move(place), keys, retention_ms));
}

Result<std::unique_ptr<FilesystemStore>> FilesystemStore::open(const std::string& name,
                                                               const config::FilesystemStore& config,
                                                               proto::KeyRule keys) {
  return begun(make(name, config, keys));
}

Result<std::unique_ptr<FilesystemStore>> FilesystemStore::open(StorePlace place, proto::KeyRule keys) {
  return begun(make(std::move(place), keys, {}));
}

void FilesystemStore::prepare(bool is_new) {
  const StorePlace& place = core_->place;
  struct stat status {};
  const auto directory = StoreDirectory::open(place);
  if (!directory) {
    log_warn("store is not there: until it is bellhop nacks publishes that need it, and holds deliveries",
             {{"store", place.name},
              {"key", "stores." + place.name + ".path"},
              {"reason", directory.error()},
              {"advice",
               place.marker_required
                   ? "mount it; a new folder: create it and start bellhop again, which marks it as the store"
                   : "mount or create it"}});
    core_->wait.begin();
    return;
  }
  const auto marker_before = directory.value().check_marker(place);
  if (faccessat(directory.value().fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    const int error = errno;
    fstat(directory.value().fd(), &status);
    log_warn("store is read-only for bellhop: bellhop nacks publishes that need it",
             {{"store", place.name},
              {"key", "stores." + place.name + ".path"},
              {"path", place.path},
              {"reason", errno_text(error)},
              {"owner", owner_and_mode(status)},
              {"bellhop_uid", geteuid()},
              if_known("advice", marker_before
                                     ? ""
                                     : "give the folder to bellhop's user and start bellhop again; where "
                                       "no bellhop shall write, set marker: optional")});
    if (!marker_before) core_->wait.begin();
    return;
  }
  const bool sync_directory =
      core_->abilities.of(place, directory.value(), core_->keys.next()).sync_directory && place.fsync;
  if (place.marker_required && is_new) {
    auto written = directory.value().write_marker(place, sync_directory);
    if (!written) log_warn("store gets no marker", {{"store", place.name}, {"reason", written.error()}});
  }
  if (auto marker = directory.value().check_marker(place); !marker) {
    log_warn("store has no marker: set `marker: optional` for a directory that no bellhop writes to",
             {{"store", place.name}, {"key", "stores." + place.name + ".path"}, {"reason", marker.error()}});
    core_->wait.begin();
  }
}

void FilesystemStore::begin_upkeep() {
  if (retention_ms_ && retention_ == nullptr)
    retention_ = std::make_unique<Retention>(core_->place, std::chrono::seconds(*retention_ms_ / 1000));
  if (std::exchange(has_upkeep_begun_, true)) return;
  // In the background: a large directory must not delay the start.
  core_->pool.run(nullptr, Work::upkeep, [core = core_] {
    const auto directory = StoreDirectory::open(core->place);
    const size_t removed = directory ? sweep_unfinished(directory.value()) : 0;
    if (removed != 0)
      log_info("unfinished objects older than 24 h removed",
               {{"store", core->place.name}, {"removed", removed}});
  });
}

void FilesystemStore::end_upkeep() {
  if (retention_ != nullptr) retention_->end();
}

FilesystemStore::FilesystemStore(StorePlace place, proto::KeyRule keys, std::optional<uint64_t> retention_ms)
    : ClaimStore(place.name, keys),
      core_(std::make_shared<FilesystemCore>(std::move(place), shares, verifying_shares())),
      retention_ms_(retention_ms) {}

FilesystemStore::~FilesystemStore() {
  core_->verifying.stop();
  core_->pool.stop();
}

void FilesystemStore::close() {
  retention_.reset();
  core_->pool.stop();
}

std::unique_ptr<Upload> FilesystemStore::begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) {
  return std::make_unique<FilesystemUploadHandle>(
      std::make_shared<FilesystemUpload>(core_, size_bytes, std::move(executor)));
}

void FilesystemStore::fetch_redeemable(FetchRequest request) {
  fetch_object(core_, std::move(request));
}

void FilesystemStore::remove(const std::string& key) {
  remove_object(core_, key);
}

}  // namespace bellhop
