#include "daemon/door/amqp/publisher.h"

#include <algorithm>

#include "daemon/door/amqp/broker_exchanges.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/releaser.h"
#include "daemon/ops/trouble.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr std::string_view reply_to_prefix = "amq.rabbitmq.reply-to.";

// The first three bytes of a body (fewer: more has to come): of `raw_frames`, then of `payload`.
Bytes first_three(Bytes raw_frames, Bytes payload, uint8_t (&storage)[3]) {
  size_t have = 0;
  auto add = [&](Bytes part) {
    for (uint8_t byte : part) {
      if (have == 3) return;
      storage[have++] = byte;
    }
  };
  for (Bytes rest = raw_frames; !rest.empty() && have < 3;) {
    size_t bytes = load_u32(rest.data() + 3);
    add(rest.subspan(proto::frame_head_bytes, bytes));
    rest = rest.subspan(bytes + proto::frame_overhead_bytes);
  }
  add(payload);
  return {storage, have};
}

}  // namespace

Publisher::Publisher(SessionCore& core)
    : core_(core), stamper_(*core.shared.routing, core.config.service + "@" + core.shared.host, core.uuids) {}

bool Publisher::on_publish(Channel& channel, const proto::Frame& frame) {
  PublishAssembly& in = channel.in;
  in.stage = PublishAssembly::Stage::header;
  in.method.borrow(frame.raw);
  in.received_bytes = 0;
  in.start.clear();
  held_.push_back(channel.id);
  return true;
}

// In RabbitMQ's words.
void Publisher::out_of_place(const Channel& channel) {
  switch (channel.in.stage) {
    case PublishAssembly::Stage::idle:
      core_.close_connection(505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead");
      break;
    case PublishAssembly::Stage::header:
      core_.close_connection(505,
                             "UNEXPECTED_FRAME - expected content header for class 60, got non content "
                             "header frame instead",
                             proto::method::basic_publish);
      break;
    default:
      core_.close_connection(505,
                             "UNEXPECTED_FRAME - expected content body, got non content body frame instead",
                             proto::method::basic_publish);
  }
}

const config::Plan* Publisher::plan_for(const proto::Publish& publish,
                                        const proto::ContentHeader& header) const {
  const config::RoutingTable& routing = *core_.shared.routing;
  if (publish.exchange == route_exchange) return routing.by_name(publish.routing_key);
  return &routing.find(publish.exchange, publish.routing_key, header.header_fields());
}

bool Publisher::on_header(Channel& channel, const proto::Frame& frame) {
  using proto::method::basic_publish;
  PublishAssembly& in = channel.in;
  if (in.stage != PublishAssembly::Stage::header) {
    out_of_place(channel);
    return true;
  }
  if (frame.payload.size() < 14) {
    core_.close_connection(
        501, "FRAME_ERROR - content header of " + std::to_string(frame.payload.size()) + " bytes");
    return true;
  }
  if (load_u16(frame.payload.data()) != proto::class_basic) {
    core_.close_connection(505,
                           "UNEXPECTED_FRAME - expected content header for class 60, got one for class " +
                               std::to_string(load_u16(frame.payload.data())) + " instead",
                           basic_publish);
    return true;
  }
  auto publish = proto::decode_publish(in.method.payload());
  auto header = proto::decode_content_header(frame.payload);
  if (!publish) {
    core_.close_connection(501, "FRAME_ERROR - " + publish.error(), basic_publish);
    return true;
  }
  if (!header) {
    core_.close_connection(502, "SYNTAX_ERROR - " + header.error(), basic_publish);
    return true;
  }
  in.header.borrow(frame.raw);
  in.publish = publish.value();
  in.content = header.value();
  in.is_decoded = true;
  in.body_bytes = in.content.body_bytes;
  in.hop = in.publish.exchange == next_exchange;
  in.plan = plan_for(in.publish, in.content);
  const config::Limits& limits = core_.config.limits;
  if (in.body_bytes > limits.message_bytes) {
    refuse(channel, 406,
           "PRECONDITION_FAILED - message of " + std::to_string(in.body_bytes) +
               " bytes is larger than limits.message_bytes (" + std::to_string(limits.message_bytes) + ")",
           true);
  } else if (in.plan == nullptr) {
    refuse(channel, 404,
           "NOT_FOUND - no route '" + std::string(in.publish.routing_key) +
               "' of bellhop says where a message goes (by slip, to, or match without wildcards)",
           true);
  } else if (!in.hop && in.content.has(proto::user_id) && core_.has_own_login &&
             in.content.text(proto::user_id) != core_.broker_user) {
    refuse(channel, 406,
           "PRECONDITION_FAILED - user_id property set to '" + std::string(in.content.text(proto::user_id)) +
               "' but authenticated user was '" + core_.broker_user + "'",
           true);
  } else if (in.body_bytes < proto::claim_prefix_bytes) {
    if (!begin(channel, in.publish, in.content, proto::Framing::raw)) return false;
  } else {
    in.stage = PublishAssembly::Stage::start;
  }
  if (in.body_bytes == 0 && channel.state == Channel::State::open) finish(channel);
  return true;
}

bool Publisher::on_body(Channel& channel, const proto::Frame& frame) {
  PublishAssembly& in = channel.in;
  using Stage = PublishAssembly::Stage;
  if (in.stage == Stage::idle || in.stage == Stage::header) {
    out_of_place(channel);
    return true;
  }
  if (frame.payload.size() > in.body_bytes - in.received_bytes) {
    core_.close_connection(
        501,
        "FRAME_ERROR - a body of " + std::to_string(in.body_bytes) + " bytes was announced, and more came",
        proto::method::basic_publish);
    return true;
  }
  // Empty frames are dropped: a client may send any number of them.
  if (frame.payload.empty()) return true;
  if (in.stage == Stage::start) {
    uint8_t storage[3];
    Bytes start = first_three(in.start, frame.payload, storage);
    if (start.size() < 3) {
      put(in.start, frame.raw);
      in.received_bytes += frame.payload.size();
      return true;
    }
    if (!in.is_decoded) {
      in.publish = proto::decode_publish(in.method.payload()).value();
      in.content = proto::decode_content_header(in.header.payload()).value();
      in.is_decoded = true;
    }
    if (!begin(channel, in.publish, in.content, proto::framing_of(start))) return false;
    if (channel.state != Channel::State::open) return true;
  }
  in.received_bytes += frame.payload.size();
  if (in.stage == Stage::relaying) {
    if (channel.queue.empty()) {
      core_.broker->outbox().borrow(frame.raw);
    } else {
      put(channel.queue.back().frames, frame.raw);
      core_.take(&channel, frame.raw.size());
    }
  } else if (in.stage == Stage::job) {
    add_to_job(channel, frame.payload);
  }
  if (in.received_bytes == in.body_bytes) finish(channel);
  return true;
}

ClaimStore* Publisher::store_for(const config::Plan& plan, uint64_t body_bytes, proto::Framing framing,
                                 const proto::Publish& publish) const {
  const config::ClaimCheck& rule = plan.claim_check;
  if (!rule.offloads() || body_bytes < rule.threshold_bytes) return nullptr;
  if (rule.pass_already_framed && framing != proto::Framing::raw) return nullptr;
  if (publish.exchange.empty() && publish.routing_key.starts_with(reply_to_prefix)) return nullptr;
  return core_.shared.stores->find(rule.store);
}

// A slip's step is sent to its pipeline's exchange, or to its queue where there is none. False: the broker
// was asked which, and has not answered yet.
bool Publisher::knows_destination(const config::Plan& plan, const proto::ContentHeader& header) {
  if (plan.pipeline == nullptr && !plan.itinerary) return true;
  BrokerExchanges& exchanges = *core_.broker_exchanges;
  if (exchanges.know_all()) return true;
  if (carries_slip(header.header_fields())) return exchanges.know(nullptr);
  return plan.pipeline == nullptr || exchanges.know(plan.pipeline);
}

// False: the publish has to wait for a transfer to end, or for an answer of the broker.
bool Publisher::begin(Channel& channel, const proto::Publish& publish, const proto::ContentHeader& header,
                      proto::Framing framing) {
  PublishAssembly& in = channel.in;
  ClaimStore* store = store_for(*in.plan, in.body_bytes, framing, publish);
  if (!knows_destination(*in.plan, header)) return false;
  std::erase(held_, channel.id);
  if (store != nullptr || in.hop) {
    if (!begin_job(channel, store)) {
      held_.push_back(channel.id);
      return false;
    }
    return true;
  }
  const config::ClaimCheck& rule = in.plan->claim_check;
  bool looks_framed = framing != proto::Framing::raw;
  bool direct_reply = publish.exchange.empty() && publish.routing_key.starts_with(reply_to_prefix);
  bool frame_it =
      looks_framed ? !rule.pass_already_framed : rule.enabled && rule.inline_always && !direct_reply;
  begin_relay(channel, publish, header, frame_it ? proto::claim_prefix_bytes : 0);
  return true;
}

void Publisher::begin_relay(Channel& channel, const proto::Publish& publish,
                            const proto::ContentHeader& header, size_t framing_bytes) {
  PublishAssembly& in = channel.in;
  bool direct = channel.queue.empty();
  Release release;
  Buffer& out = direct ? core_.broker->outbox().tail() : release.frames;
  Stamped stamped = stamper_.write(out, channel.id,
                                   {publish, header, *in.plan, nullptr, framing_bytes,
                                    publish.exchange == route_exchange, &core_.broker_exchanges->missing()},
                                   core_.frame_bytes_max);
  if (stamped.refused_code != 0) {
    refuse(channel, stamped.refused_code, std::move(stamped.refused_text));
    return;
  }
  std::unique_ptr<Sent> sent;
  if (publish.mandatory) {
    sent = std::make_unique<Sent>();
    sent->mandatory = true;
    sent->framed = framing_bytes != 0;
    sent->exchange = publish.exchange;
    sent->routing_key = publish.routing_key;
    sent->sent_exchange = stamped.exchange;
    sent->sent_routing_key = stamped.routing_key;
    sent->message_id = stamped.message_id;
    sent->header.assign(in.header.payload().begin(), in.header.payload().end());
    Outcomes::remember_header(
        *sent, stamped.as_it_is ? in.header.payload()
                                : Bytes(out).subspan(stamped.header_at, out.size() - 1 - stamped.header_at));
    sent->transaction.sent();
  }
  in.stage = PublishAssembly::Stage::relaying;
  if (direct) {
    Outbox& outbox = core_.broker->outbox();
    if (stamped.as_it_is) {
      outbox.borrow(in.method.view());
      outbox.borrow(in.header.view());
    }
    if (framing_bytes != 0)
      proto::put_frame(outbox.tail(), proto::frame_body, channel.id, proto::claim_inline_prefix);
    if (!in.start.empty()) outbox.append(in.start);
    core_.releaser->published(channel, std::move(sent));
    return;
  }
  if (stamped.as_it_is) {
    put(release.frames, in.method.view());
    put(release.frames, in.header.view());
  }
  if (framing_bytes != 0)
    proto::put_frame(release.frames, proto::frame_body, channel.id, proto::claim_inline_prefix);
  put(release.frames, in.start);
  release.kind = Release::Kind::publish;
  release.open = true;
  release.sent = std::move(sent);
  core_.releaser->enqueue(channel, std::move(release));
}

bool Publisher::begin_job(Channel& channel, ClaimStore* store) {
  PublishAssembly& in = channel.in;
  // A publish that is still arriving is never kept waiting by others that are: only complete ones give their
  // place back by themselves.
  if (store != nullptr && core_.transfers >= core_.config.limits.transfers_per_session && finishing_ > 0)
    return false;
  // What is collected in memory is freed only when its client completes it, so there must be a place for the
  // whole of it from the beginning.
  if (store == nullptr && !core_.shared.hop_bodies->take(in.body_bytes)) {
    refuse(channel, 406,
           "PRECONDITION_FAILED - a hop of " + std::to_string(in.body_bytes) +
               " bytes is not offloaded, and with the others that are arriving it is more than "
               "limits.inflight_bytes (" +
               std::to_string(core_.config.limits.inflight_bytes) +
               "): configure claim_check.store, or raise the limit");
    return true;
  }
  auto job = std::make_shared<PublishJob>();
  if (store == nullptr) job->reserved_bytes = in.body_bytes;
  job->method.assign(in.method.payload().begin(), in.method.payload().end());
  job->header.assign(in.header.payload().begin(), in.header.payload().end());
  job->plan = in.plan;
  job->hop = in.hop;
  job->body_bytes = in.body_bytes;
  if (store != nullptr) {
    job->store = store;
    job->upload = store->begin(in.body_bytes, core_.mailbox);
    job->holds_slot = true;
    core_.transfers++;
  }
  in.job = job;
  in.stage = PublishAssembly::Stage::job;
  Release release;
  release.kind = Release::Kind::job;
  release.job = std::move(job);
  core_.releaser->enqueue(channel, std::move(release));
  for (Bytes rest = in.start; !rest.empty();) {
    size_t bytes = load_u32(rest.data() + 3);
    add_to_job(channel, rest.subspan(proto::frame_head_bytes, bytes));
    rest = rest.subspan(bytes + proto::frame_overhead_bytes);
  }
  return true;
}

void Publisher::refuse(Channel& channel, uint16_t code, std::string text, bool closes) {
  channel.in.stage = PublishAssembly::Stage::dropping;
  std::erase(held_, channel.id);
  auto job = std::make_shared<PublishJob>();
  const Bytes method = channel.in.method.payload(), header = channel.in.header.payload();
  job->method.assign(method.begin(), method.end());
  job->header.assign(header.begin(), header.end());
  job->settled = true;
  job->refused_code = code;
  job->refused_text = std::move(text);
  job->refusal_closes = closes;
  Release release;
  release.kind = Release::Kind::job;
  release.job = std::move(job);
  core_.releaser->enqueue(channel, std::move(release));
  core_.releaser->pump(channel);
}

void Publisher::add_to_job(Channel& channel, Bytes payload) {
  PublishJob& job = *channel.in.job;
  job.unwritten_bytes += payload.size();
  core_.take(nullptr, payload.size());
  if (job.upload == nullptr) {
    core_.collected_bytes += payload.size();
    put(job.body, payload);
    return;
  }
  job.upload->write(Buffer(payload.begin(), payload.end()),
                    [core = &core_, weak = std::weak_ptr(channel.in.job)](size_t bytes) {
                      auto alive = weak.lock();
                      if (alive == nullptr || alive->unwritten_bytes < bytes) return;
                      alive->unwritten_bytes -= bytes;
                      core->give_back(nullptr, bytes);
                    });
}

// The last byte of the publish came.
void Publisher::finish(Channel& channel) {
  PublishAssembly& in = channel.in;
  PublishAssembly::Stage stage = std::exchange(in.stage, PublishAssembly::Stage::idle);
  if (stage == PublishAssembly::Stage::relaying) {
    if (!channel.queue.empty()) {
      channel.queue.back().open = false;
      return;
    }
    if (!channel.after_publish.empty()) {
      core_.broker->outbox().append(channel.after_publish);
      channel.after_publish.clear();
    }
    if (channel.close_when_whole) {
      auto [code, text] = *std::exchange(channel.close_when_whole, std::nullopt);
      core_.close_channel(channel, code, text);
    }
    return;
  }
  if (stage != PublishAssembly::Stage::job) return;
  std::shared_ptr<PublishJob> job = std::move(in.job);
  job->complete = true;
  if (job->upload == nullptr) {
    core_.shared.hop_bodies->give_back(std::exchange(job->reserved_bytes, 0));
    core_.collected_bytes -= job->unwritten_bytes;
    job->settled = true;
    core_.releaser->pump(channel);
    return;
  }
  finishing_++;
  job->upload->finish([this, id = channel.id, generation = channel.generation,
                       weak = std::weak_ptr(job)](Result<Claim> result) {
    auto alive = weak.lock();
    if (alive != nullptr) uploaded(core_.channel(id, generation), alive, std::move(result));
  });
}

void Publisher::uploaded(Channel* channel, const std::shared_ptr<PublishJob>& job, Result<Claim> result) {
  if (result) {
    job->transaction.stored(*job->store, std::move(result.value()));
    if (has_trouble()) {
      const std::string store = "store '" + job->store->name() + "'";
      trouble_over(trouble_publish_refused, store, store + " takes payloads again");
    }
  } else {
    job->refused_code = 541;
    const std::string where = "store '" + job->store->name() + "': ";
    job->refused_text =
        "INTERNAL_ERROR - " + (result.error().starts_with(where) ? result.error() : where + result.error());
  }
  job->settled = true;
  end_job(*job);
  if (channel != nullptr) core_.releaser->pump(*channel);
}

void Publisher::end_job(PublishJob& job) {
  core_.shared.hop_bodies->give_back(std::exchange(job.reserved_bytes, 0));
  if (job.holds_slot) {
    job.holds_slot = false;
    core_.transfers--;
    if (job.complete) finishing_--;
  } else if (!job.complete) {
    core_.collected_bytes -= job.unwritten_bytes;
  }
  core_.give_back(nullptr, std::exchange(job.unwritten_bytes, 0));
  job.upload.reset();
}

void Publisher::detach_held() {
  for (uint16_t id : held_) {
    Channel* channel = core_.channel(id);
    if (channel == nullptr) continue;
    channel->in.method.detach();
    channel->in.is_decoded = false;
    if (channel->in.stage == PublishAssembly::Stage::start) channel->in.header.detach();
  }
}

void Publisher::drop_incomplete(Channel& channel) {
  PublishAssembly& in = channel.in;
  if (in.stage == PublishAssembly::Stage::idle || SessionCore::is_half_sent(channel)) return;
  // Only the last entry of the queue can be incomplete.
  if (in.stage == PublishAssembly::Stage::job ||
      (in.stage == PublishAssembly::Stage::relaying && !channel.queue.empty())) {
    Release& last = channel.queue.back();
    core_.give_back(&channel, last.frames.size());
    if (last.job != nullptr) end_job(*last.job);
    channel.queue.pop_back();
    in.job.reset();
  }
  in.stage = PublishAssembly::Stage::idle;
  std::erase(held_, channel.id);
}

void Publisher::abandon(Channel& channel) {
  // The rest of a publish that the broker has half of still goes there.
  const bool half_sent = SessionCore::is_half_sent(channel);
  for (Release& release : channel.queue) {
    core_.give_back(&channel, release.frames.size());
    if (release.job != nullptr) end_job(*release.job);
  }
  channel.queue.clear();
  channel.in.job.reset();
  if (!half_sent) channel.in.stage = PublishAssembly::Stage::idle;
  channel.after_publish.clear();
  std::erase(held_, channel.id);
}

}  // namespace bellhop
