// An object that is being written and that no reader can see yet. It is a file without a name (O_TMPFILE)
// where the filesystem can do that. Else it has a dot-name with host and process id, which is never a key.
// Blocking calls, one thread at a time.
//
//   create ─► append* ─► publish ─► an object under its key
//                └────────┴─ destroyed: nothing stays
#pragma once

#include <sys/uio.h>

#include <span>
#include <string>

#include "daemon/claims/filesystem/directory_abilities.h"
#include "daemon/claims/filesystem/store_directory.h"

namespace bellhop {

class UnfinishedObject {
 public:
  // `place` must outlive the object. `key`: what it will be published under, never used before. Error: the
  // store is unavailable, or no file can be made.
  static Result<UnfinishedObject> create(const StorePlace& place, DirectoryAbilities& abilities,
                                         const std::string& key);
  UnfinishedObject(UnfinishedObject&& other) noexcept;
  UnfinishedObject& operator=(UnfinishedObject&&) = delete;
  ~UnfinishedObject();

  // Appends all pieces; changes `pieces` on the way. Error: the disk is full, or broken.
  Result<void> append(std::span<iovec> pieces);
  // Gives the file its mode and group, syncs it, puts it whole under its key, and syncs the directory
  // together with others (`directory_sync`). After an error nothing is under the key.
  Result<void> publish(SharedSync& directory_sync);

 private:
  UnfinishedObject(const StorePlace& place, Abilities can, std::string key, StoreDirectory directory,
                   FileDescriptor file, std::string dot_name);
  Error failed(const char* what, int error) const;
  void start_writeback();
  int put_in_place();  // 0 or an errno

  const StorePlace* place_;
  Abilities can_;
  std::string key_;
  StoreDirectory directory_;
  FileDescriptor file_;
  std::string dot_name_;  // empty: the file has no name
  uint64_t written_bytes_ = 0;
  uint64_t started_bytes_ = 0;  // of written_bytes_: on their way to the disk already
};

}  // namespace bellhop
