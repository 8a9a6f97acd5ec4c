// The directory of a filesystem store (daemon/claims/README.md, "Filesystem store"): one flat directory, file
// name = key, contents = payload. A marker file tells the store from a bare mount point. Blocking calls, for
// a store's own threads and for the start.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "daemon/claims/filesystem/shared_sync.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

// Where a store is and how it writes. Immutable.
struct StorePlace {
  std::string name;  // the store's configured name
  std::string path;
  mode_t mode = 0640;
  std::optional<gid_t> group;  // unset: the process's own
  bool fsync = true;
  bool marker_required = true;
  bool unnamed_files = true;  // false: never O_TMPFILE, as on filesystems that have none
};

// One opening of the directory. Each transfer opens it anew, so that bellhop notices when a mount went or
// came back.
class StoreDirectory {
 public:
  // Error: the store is unavailable, and why.
  static Result<StoreDirectory> open(const StorePlace& place);

  int fd() const { return fd_.get(); }
  // Device and inode; both are 0 when the filesystem does not say.
  SharedSync::Place identity() const;
  bool is_same_as(const StoreDirectory& other) const;
  bool has_marker() const;
  // Error: the place requires the marker and it is not there. Then the mount is gone, and nothing may be
  // written.
  Result<void> check_marker(const StorePlace& place) const;
  // Only at bellhop's start. Writes the marker if it is not there yet, and syncs the directory if
  // `sync_directory`.
  Result<void> write_marker(const StorePlace& place, bool sync_directory) const;
  Result<void> sync() const;
  // The directory's entries, for readdir. Null with errno: it cannot be listed.
  std::unique_ptr<DIR, int (*)(DIR*)> list() const;

 private:
  explicit StoreDirectory(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

inline constexpr char marker_name[] = ".bellhop-store";

// Gives a file without a name (O_TMPFILE) a name. Returns 0 or an errno. Does not replace a file that has the
// name already.
int link_unnamed(int fd, int directory_fd, const std::string& name);

// Removes unfinished objects older than 24 h, of whichever bellhop. Younger ones may be another sidecar's
// live uploads. Returns how many it removed.
size_t sweep_unfinished(const StoreDirectory& directory);

// "uid 1000 (app), gid 1000 (app), mode 0600"
std::string owner_and_mode(const struct stat& status);

}  // namespace bellhop
