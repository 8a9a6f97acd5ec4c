// ConfigWatch: says when the configuration may have changed (admin.watch). It watches directories and not
// files: an editor replaces a file, and Kubernetes swaps a symbolic link beside it. Any event in one of them,
// then a second of quiet; beside that once a minute, for what no event tells (a network mount, a directory
// that was not there).
//
// One thread, the loop's.
#pragma once

#include <uv.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace bellhop {

class ConfigWatch {
 public:
  static constexpr uint64_t quiet_ms = 1000, longest_ms = 5000, minute_ms = 60000;

  // `look` is called when something may have changed; whether it has is for the caller to find out.
  ConfigWatch(uv_loop_t* loop, std::function<void()> look);
  // The loop has to run once more to let libuv go of the handles.
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  // These are the files that count. The directories of what they link to are watched anew, since one may have
  // been replaced. If they are others than before, a look follows.
  void watch(const std::vector<std::string>& files);

 private:
  void stop_watching();
  void noticed();

  uv_loop_t* const loop_;
  const std::function<void()> look_;
  std::set<std::string> directories_;
  std::vector<uv_fs_event_t*> watched_;  // each freed by its close callback
  uv_timer_t *quiet_, *minute_;          // likewise
  uint64_t noticed_at_ms_ = 0;           // the first event since the last look; 0: none
};

// The directories in which a change may change what is read at `path`: its own, and those of every link on
// the way to the file. Exposed for tests.
std::set<std::string> directories_of(const std::string& path);

}  // namespace bellhop
