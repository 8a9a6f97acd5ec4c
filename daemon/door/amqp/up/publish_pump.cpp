#include "daemon/door/amqp/up/publish_pump.h"

#include <utility>

#include "daemon/door/amqp/log_about.h"
#include "daemon/door/amqp/tap_lines.h"
#include "proto/claim_frame.h"
#include "proto/method.h"

namespace bellhop {

namespace {

using Kind = PublishQueue::Entry::Kind;

// A channel that closes takes its unacknowledged deliveries along: hops and parks under way settle theirs
// first.
bool waits_for_hops(const Channel& channel, Bytes payload) {
  return *channel.pending != 0 && proto::method_number(payload) == proto::method::channel_close;
}

}  // namespace

void PublishPump::method(Channel& channel, const proto::Frame& frame) {
  if (channel.publishes.empty() && !waits_for_hops(channel, frame.payload)) {
    methods_.apply(channel, frame, true);
    return;
  }
  PublishQueue::Entry entry;
  entry.frames.assign(frame.raw.begin(), frame.raw.end());
  channel.publishes.push(std::move(entry));
}

void PublishPump::pump() {
  if (is_idle()) return;
  // What is released may close a channel; it opens and forgets none.
  for (const auto& channel : channels_.all()) {
    if (channel != nullptr) pump(*channel);
  }
}

void PublishPump::pump(Channel& channel) {
  auto goes_on = [&] { return !state_.ending && (channel.end.is_open() || channel.end.is_client_closing()); };
  while (!channel.publishes.empty() && goes_on()) {
    const PublishQueue::Entry& front = channel.publishes.front();
    if (front.kind == Kind::job && !front.job->is_done) return;
    if (front.kind == Kind::method && waits_for_hops(channel, proto::whole_frame(front.frames).payload))
      return;
    PublishQueue::Entry entry = channel.publishes.pop_front();
    switch (entry.kind) {
      case Kind::publish:
        if (entry.tapped != nullptr) tell(state_, *entry.tapped);
        to_broker_.append(entry.frames);
        tracker_.published(channel, entry.mark, std::move(entry.sent));
        break;
      case Kind::method:
        methods_.apply(channel, proto::whole_frame(entry.frames), false);
        break;
      case Kind::job:
        release_job(channel, *entry.job);
        break;
    }
  }
}

void PublishPump::release_job(Channel& channel, PublishJob& job) {
  job.end_transfer();
  if (job.refused_code != 0) {
    refusals_.refuse(channel, job, job.refused_code, job.refused_text, job.refusal_closes);
    return;
  }
  if (job.hop) {
    if (channel.tx) {
      refusals_.refuse(channel, job, 540,
                       "NOT_IMPLEMENTED - bellhop.next cannot be used on a transactional channel", true);
      return;
    }
    hops_.release(channel, job);
    return;
  }
  auto publish = proto::decode_publish(job.method);
  auto header = proto::decode_content_header(job.header);
  const Claim& claim = *job.stored.claim();
  Buffer& out = to_broker_.tail();
  bool by_name = publish.value().exchange == route_exchange;
  Stamped stamped = stamper_.write(out, channel.id,
                                   {publish.value(), header.value(), *job.snapshot->routing, *job.plan,
                                    job.snapshot->origin, &claim, 0, by_name, &exchanges_.missing()},
                                   state_.frame_bytes_max);
  if (stamped.refused_code != 0) {
    refusals_.refuse(channel, job, stamped.refused_code, stamped.refused_text);
    return;
  }
  const size_t header_end = out.size() - 1;
  size_t begin = proto::begin_frame(out, proto::frame_body, channel.id);
  put(out, proto::claim_check_prefix);
  put(out, as_bytes(claim.key));
  proto::end_frame(out, begin);
  if (state_.shared.taps.is_on()) {
    const Bytes sent_header = Bytes(out).subspan(stamped.header_at, header_end - stamped.header_at);
    tell(state_, tap_line(state_, {publish.value().exchange, publish.value().routing_key, stamped.exchange,
                                   stamped.routing_key, job.plan, claim.size_bytes, &claim,
                                   table_of(sent_header), header.value().header_fields()}));
  }
  if (logs(spdlog::level::debug)) log_debug("payload offloaded", about(state_, channel.id, job));
  if (!channel.tx) job.stored.sent();
  std::unique_ptr<Sent> sent;
  if (publish.value().mandatory || channel.tx) {
    sent = PublishTracker::remember(publish.value(), stamped, job.header,
                                    Bytes(out).subspan(stamped.header_at, header_end - stamped.header_at));
    sent->stored = std::move(job.stored);
  }
  tracker_.published(channel, job.mark, std::move(sent));
}

}  // namespace bellhop
