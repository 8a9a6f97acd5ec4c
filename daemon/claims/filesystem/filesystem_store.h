// Keeps payloads as files of one directory that services share (daemon/claims/README.md, "Filesystem store").
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_core.h"
#include "daemon/claims/filesystem/retention.h"

namespace bellhop {

class FilesystemStore : public ClaimStore {
 public:
  // Errors: a path that is no directory, an unknown group. Nothing is done there yet.
  static Result<std::unique_ptr<FilesystemStore>> make(const std::string& name,
                                                       const config::FilesystemStore& config,
                                                       proto::KeyRule keys = proto::KeyRule::issued);
  // What a store's configuration says, with the group looked up. Error: an unknown group.
  static Result<StorePlace> place_of(const std::string& name, const config::FilesystemStore& config);
  // make(), then prepare() as a new one and begin_upkeep().
  static Result<std::unique_ptr<FilesystemStore>> open(const std::string& name,
                                                       const config::FilesystemStore& config,
                                                       proto::KeyRule keys = proto::KeyRule::issued);
  static Result<std::unique_ptr<FilesystemStore>> open(StorePlace place,
                                                       proto::KeyRule keys = proto::KeyRule::issued);
  // Does what is queued, then ends the store's threads. Uploads and objects may outlive the store.
  ~FilesystemStore() override;

  std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) override;
  void remove(const std::string& key) override;
  // Looks at the directory, and writes the marker to a new one if bellhop may write there. In one that is
  // known a missing marker says that the mount is gone. A directory that is missing or not writable now is a
  // warning in the log.
  void prepare(bool is_new) override;
  // Retention; at first also old unfinished objects are removed.
  void begin_upkeep() override;
  void end_upkeep() override;
  void close() override;
  std::vector<std::string> uploads_under_way() const override { return core_->keys_under_way.all(); }

 private:
  FilesystemStore(StorePlace place, proto::KeyRule keys, std::optional<uint64_t> retention_ms);
  static Result<std::unique_ptr<FilesystemStore>> make(StorePlace place, proto::KeyRule keys,
                                                       std::optional<uint64_t> retention_ms);
  void fetch_redeemable(FetchRequest request) override;

  std::shared_ptr<FilesystemCore> core_;
  const std::optional<uint64_t> retention_ms_;  // unset: nothing is removed for its age
  bool has_upkeep_begun_ = false;
  std::unique_ptr<Retention> retention_;
};

}  // namespace bellhop
