#include "daemon/door/amqp/up/upload_jobs.h"

#include <utility>

#include "daemon/ops/trouble.h"

namespace bellhop {

std::shared_ptr<PublishJob> UploadJobs::job_of(const PublishAssembly& in) {
  auto job = std::make_shared<PublishJob>();
  const Bytes method = in.method.payload(), header = in.header.payload();
  job->method.assign(method.begin(), method.end());
  job->header.assign(header.begin(), header.end());
  return job;
}

void UploadJobs::push(Channel& channel, std::shared_ptr<PublishJob> job) {
  PublishQueue::Entry entry;
  entry.kind = PublishQueue::Entry::Kind::job;
  entry.job = std::move(job);
  channel.publishes.push(std::move(entry));
}

bool UploadJobs::begin(Channel& channel, const config::Plan& plan, std::shared_ptr<ClaimStore> store) {
  PublishAssembly& in = channel.in;
  QuotaShare reserved;
  // What is collected in memory is freed only when its client completes it, so there must be a place for the
  // whole of it from the beginning.
  if (store == nullptr && !(reserved = QuotaShare(*state_.shared.hop_bodies, in.body_bytes))) return false;
  auto job = job_of(in);
  job->snapshot = state_.snapshot;
  job->plan = &plan;
  job->hop = in.hop;
  if (!in.hop) job->mark = state_.meter.begin_publish(plan.counter, in.body_bytes);
  job->memory = MemoryLease(memory_, store == nullptr ? MemoryUse::arriving_hop : MemoryUse::publish, 0);
  if (store == nullptr) {
    job->reserved = std::move(reserved);
  } else {
    job->upload = store->begin(in.body_bytes, executor_);
    job->store = std::move(store);
    job->slot = slots_.take();
  }
  in.job = job;
  in.stage = PublishAssembly::Stage::job;
  push(channel, std::move(job));
  for (Bytes rest = in.start; !rest.empty();) {
    const size_t bytes = load_u32(rest.data() + 3);
    add(in.job, rest.subspan(proto::frame_head_bytes, bytes));
    rest = rest.subspan(bytes + proto::frame_overhead_bytes);
  }
  return true;
}

void UploadJobs::refuse(Channel& channel, const config::Plan* plan, uint16_t code, std::string text,
                        bool closes) {
  channel.in.stage = PublishAssembly::Stage::dropping;
  auto job = job_of(channel.in);
  job->hop = channel.in.hop;
  if (!job->hop) job->mark = state_.meter.begin_publish(plan != nullptr ? plan->counter : 0, 0);
  job->is_done = true;
  job->refused_code = code;
  job->refused_text = std::move(text);
  job->refusal_closes = closes;
  push(channel, std::move(job));
}

void UploadJobs::add(const std::shared_ptr<PublishJob>& job, Bytes payload) {
  job->memory.grow(payload.size());
  if (job->upload == nullptr) {
    put(job->body, payload);
    return;
  }
  job->upload->write(Buffer(payload.begin(), payload.end()), [weak = std::weak_ptr(job)](size_t bytes) {
    auto alive = weak.lock();
    if (alive != nullptr && alive->memory.is_active() && alive->memory.bytes() >= bytes)
      alive->memory.shrink(bytes);
  });
}

void UploadJobs::finish(const std::shared_ptr<PublishJob>& job) {
  if (job->upload == nullptr) {
    job->reserved = {};
    job->memory.become(MemoryUse::publish);
    job->is_done = true;
    return;
  }
  job->slot.finish();
  job->upload->finish([this, weak = std::weak_ptr(job)](Result<Claim> result) {
    if (auto alive = weak.lock()) uploaded(*alive, std::move(result));
  });
}

void UploadJobs::uploaded(PublishJob& job, Result<Claim> result) {
  if (result) {
    job.stored.stored(job.store, std::move(result.value()));
    if (has_trouble()) {
      const std::string store = "store '" + job.store->name() + "'";
      trouble_over(trouble_publish_refused, store, "store takes payloads again",
                   {{"store", job.store->name()}});
    }
  } else {
    job.refused_code = 541;
    const std::string where = "store '" + job.store->name() + "': ";
    job.refused_text =
        "INTERNAL_ERROR - " + (result.error().starts_with(where) ? result.error() : where + result.error());
  }
  job.is_done = true;
  job.end_transfer();
}

}  // namespace bellhop
