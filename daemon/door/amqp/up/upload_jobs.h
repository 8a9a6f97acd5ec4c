// UploadJobs: publishes that cannot be relayed as their frames come. Their bodies go to a store while they
// arrive, or are collected in memory for a hop. A job is released when its turn comes (publish_pump.h).
//
// One thread (the session's).
#pragma once

#include <memory>
#include <string>

#include "daemon/door/amqp/channels.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/ops/executor.h"

namespace bellhop {

class UploadJobs {
 public:
  // `executor` runs what the stores answer on the session's thread.
  UploadJobs(const SessionState& state, SessionMemory& memory, TransferSlots& slots,
             std::shared_ptr<Executor> executor)
      : state_(state), memory_(memory), slots_(slots), executor_(std::move(executor)) {}

  // Whether an upload may begin. One that is still arriving is never kept waiting by others that are: only
  // complete ones give their place back by themselves.
  bool has_place() const { return !slots_.is_full() || slots_.finishing() == 0; }
  // The publish that is arriving becomes a job at the end of its channel's queue; without a store it is
  // collected in memory. False: there is no memory for it, and nothing was done.
  bool begin(Channel& channel, const config::Plan& plan, std::shared_ptr<ClaimStore> store);
  // The publish that is arriving is refused. A job of the channel's queue, since the refusal comes in its
  // turn. `plan` is null where no route has the name.
  void refuse(Channel& channel, const config::Plan* plan, uint16_t code, std::string text, bool closes);
  // A piece of the body of the job that is arriving.
  void add(const std::shared_ptr<PublishJob>& job, Bytes payload);
  // Its last piece came.
  void finish(const std::shared_ptr<PublishJob>& job);

 private:
  static std::shared_ptr<PublishJob> job_of(const PublishAssembly& in);
  static void push(Channel& channel, std::shared_ptr<PublishJob> job);
  void uploaded(PublishJob& job, Result<Claim> result);

  const SessionState& state_;
  SessionMemory& memory_;
  TransferSlots& slots_;
  const std::shared_ptr<Executor> executor_;
};

}  // namespace bellhop
