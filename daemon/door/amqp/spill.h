// Spill: what stands behind a held delivery waits in scratch files when it gets too much for memory, so that
// the broker's connection goes on being read: RabbitMQ resets one that it cannot write to for half a minute.
//
//   plain ─► spilled (its frames are written, then freed) ─► returning ─► plain, when the lane comes to it
//
// Only whole deliveries that their consumer has yet to acknowledge: what becomes of them without being handed
// over needs no more than their tags. A disk that fails is as if there were none: they stay in memory, and
// the broker is not read when that is full.
//
// One thread (the session's); files are written and read on the spill's own thread, which all sessions share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "daemon/message/delivery.h"
#include "daemon/ops/quota.h"
#include "daemon/ops/scratch_file.h"
#include "daemon/ops/thread_pool.h"

namespace bellhop {

class SessionCore;
struct Channel;

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

class Spill {
 public:
  explicit Spill(SessionCore& core) : core_(core) {}

  // The last of a lane is whole: its frames go to a file if much is held for the client already.
  void consider(const std::shared_ptr<Delivery>& delivery);
  // The front of the lane is in a file: it is brought back, and some of those behind it, when the client has
  // taken what it was handed.
  void bring_back(const Lane& lane);

 private:
  void written(const std::shared_ptr<Delivery>& delivery, const Result<void>& outcome, Buffer frames);
  void read(const std::shared_ptr<Delivery>& delivery);
  void returned(const std::shared_ptr<Delivery>& delivery, Result<Buffer> frames);

  SessionCore& core_;
  std::weak_ptr<SpillFile> current_;  // kept by what is in it
  uint64_t try_again_at_ms_ = 0;
};

}  // namespace bellhop
