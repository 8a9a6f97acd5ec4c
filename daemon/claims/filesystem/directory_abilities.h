// What the filesystem under a store can do, found out once. A network mount may lack what a local disk has,
// and calls that can only fail would cost one for every payload.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>

#include "daemon/claims/filesystem/store_directory.h"

namespace bellhop {

struct Abilities {
  bool unnamed_files = true;   // O_TMPFILE, and a link through /proc that gives such a file its name
  bool sync_directory = true;  // fsync of a directory
  bool set_mode = true;        // fchmod
};

class DirectoryAbilities {
 public:
  // Any thread that may block. The first call tries the abilities on a file of its own, removes the file, and
  // logs what is lacking. Tries again when another filesystem is mounted there. Precondition: the marker is
  // there where it is required, or this is bellhop's start.
  Abilities of(const StorePlace& place, const StoreDirectory& directory, const std::string& fresh_key);

 private:
  std::mutex mutex_;
  std::optional<dev_t> tried_;
  Abilities found_;
};

}  // namespace bellhop
