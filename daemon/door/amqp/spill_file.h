// SpillFile: a scratch file for deliveries that wait behind a held one (down/spill.h), and what all sessions
// share for such files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "daemon/ops/quota.h"
#include "daemon/ops/scratch_file.h"
#include "daemon/ops/thread_pool.h"

namespace bellhop {

// Of the process. One thread, and one line of it for each session, so that what is read was written before.
struct SpillSpace {
  const std::shared_ptr<Quota> quota = std::make_shared<Quota>(uint64_t{4} << 30);
  ThreadPool thread{{.threads_max = 1, .one_kind_max = 1, .one_line_max = 1}};
};

// One scratch file for many deliveries, closed when the last of them has gone. Its file is the spill
// thread's.
class SpillFile {
 public:
  static std::shared_ptr<SpillFile> make(SpillSpace& space, uint64_t capacity_bytes);

  // The session's thread: a place for that many bytes, if there is one.
  std::optional<uint64_t> place(uint64_t bytes);
  // The spill's thread, blocking. What was written is read as a whole, and is an error if the disk has lost
  // it.
  Result<void> write(uint64_t offset, Bytes bytes);
  Result<Buffer> read(uint64_t offset, size_t count) const;

 private:
  SpillFile(std::shared_ptr<Quota> quota, uint64_t capacity_bytes)
      : quota_(std::move(quota)), capacity_bytes_(capacity_bytes) {}
  const std::shared_ptr<Quota> quota_;
  const uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;  // the session's thread
  // The spill's thread:
  std::unique_ptr<ScratchFile> file_;
  std::unordered_map<uint64_t, std::string> checksums_;  // by offset
};

}  // namespace bellhop
