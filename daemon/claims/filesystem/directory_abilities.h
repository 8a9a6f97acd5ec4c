// What the filesystem under a store can do, found out once: a network mount may lack what a local disk has,
// and a call that can only fail would be one for every payload.
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
  // Any thread that may block. Tries them with the first call, on a file of its own that it removes, and
  // again when another filesystem is mounted there; says in the log what is lacking. Precondition: the marker
  // is there where it is required, or this is bellhop's start.
  Abilities of(const StorePlace& place, const StoreDirectory& directory, const std::string& fresh_key);

 private:
  std::mutex mutex_;
  std::optional<dev_t> tried_;
  Abilities found_;
};

}  // namespace bellhop
