// What a filesystem store shares with its uploads and objects: the place, the threads, the keys. They may
// outlive the store.
#pragma once

#include <memory>
#include <string>

#include "daemon/claims/filesystem/directory_abilities.h"
#include "daemon/claims/filesystem/store_directory.h"
#include "daemon/claims/key_source.h"
#include "daemon/claims/keys_under_way.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/thread_pool.h"
#include "daemon/ops/waits.h"

namespace bellhop {

struct FilesystemCore {
  FilesystemCore(StorePlace store_place, ThreadShares threads, ThreadShares verifying_threads)
      : place(std::move(store_place)),
        wait("store '" + place.name + "'"),
        pool(threads),
        verifying(verifying_threads) {}

  // Any thread. The place can be used: told if it was missing at the start.
  void is_there() {
    if (wait.over()) log_info("store is available again", {{"store", place.name}});
  }

  const StorePlace place;
  Wait wait;  // it was missing at the start
  DirectoryAbilities abilities;
  KeySource keys;
  KeysUnderWay keys_under_way;
  SharedSync directory_sync;
  ThreadPool pool;
  ThreadPool verifying;  // large objects: work for the processors, and in nobody's way
};

// Any thread. Removes an object later, on one of the store's threads. A failure is logged, and retention
// takes the orphan.
void remove_object(const std::shared_ptr<FilesystemCore>& core, const std::string& key);

}  // namespace bellhop
