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
  // Looks at the directory, writes the marker if bellhop may write there (`writes_marker`: at start, and for
  // a place that is new), and has old unfinished objects swept. A directory that is missing or not writable
  // now is a warning in the log. Errors: a path that is no directory, an unknown group.
  static Result<std::unique_ptr<FilesystemStore>> open(const std::string& name,
                                                       const config::FilesystemStore& config,
                                                       proto::KeyRule keys = proto::KeyRule::issued,
                                                       bool writes_marker = true);
  // What a store's configuration says, with the group looked up. Error: an unknown group.
  static Result<StorePlace> place_of(const std::string& name, const config::FilesystemStore& config);
  // As above, for a place that is known already.
  static Result<std::unique_ptr<FilesystemStore>> open(StorePlace place,
                                                       proto::KeyRule keys = proto::KeyRule::issued,
                                                       bool writes_marker = true);
  // Does what is queued, then ends the store's threads. Uploads and objects may outlive the store.
  ~FilesystemStore() override;

  std::unique_ptr<Upload> begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) override;
  void remove(const std::string& key) override;
  void close() override;
  std::vector<std::string> uploads_under_way() const override { return core_->keys_under_way.all(); }

 private:
  FilesystemStore(StorePlace place, proto::KeyRule keys);
  void fetch_redeemable(FetchRequest request) override;

  std::shared_ptr<FilesystemCore> core_;
  std::unique_ptr<Retention> retention_;  // null: nothing is removed for its age
};

}  // namespace bellhop
