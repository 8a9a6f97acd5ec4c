// Spill: what stands behind a held delivery waits in scratch files when it gets too much for memory, so that
// the broker's connection goes on being read: RabbitMQ resets one that it cannot write to for half a minute.
//
//   plain ─► spilled (its frames are written, then freed) ─► returning ─► plain, when the queue comes to it
//
// Only whole deliveries that their consumer has yet to acknowledge: what becomes of them without being handed
// over needs no more than their tags. A disk that fails is as if there were none: they stay in memory, and
// the broker is not read when that is full.
//
// One thread (the session's); files are written and read on the spill's own thread, which all sessions share.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/door/amqp/closing.h"
#include "daemon/door/amqp/spill_file.h"
#include "daemon/ops/executor.h"

namespace bellhop {

class Spill {
 public:
  // `executor` runs what the spill's thread answers on the session's.
  Spill(const SessionState& state, SessionHost& host, Channels& channels, SessionMemory& memory,
        Closing& closing, std::shared_ptr<Executor> executor)
      : state_(state),
        host_(host),
        channels_(channels),
        memory_(memory),
        closing_(closing),
        executor_(std::move(executor)) {}

  // The last of a queue is whole: its frames go to a file if much is held for the client already.
  void consider(const std::shared_ptr<Delivery>& delivery);
  // The front of the queue is in a file, and the client has taken what it was handed: it is brought back, and
  // some of those behind it.
  void bring_back(const DeliveryQueue& queue);

 private:
  void written(const std::shared_ptr<Delivery>& delivery, const Result<void>& outcome, Buffer frames);
  void read(const std::shared_ptr<Delivery>& delivery);
  void returned(const std::shared_ptr<Delivery>& delivery, Result<Buffer> frames);

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  SessionMemory& memory_;
  Closing& closing_;
  const std::shared_ptr<Executor> executor_;
  std::weak_ptr<SpillFile> current_;  // kept by what is in it
  uint64_t try_again_at_ms_ = 0;
};

}  // namespace bellhop
