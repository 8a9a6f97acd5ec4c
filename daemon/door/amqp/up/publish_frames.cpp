#include "daemon/door/amqp/up/publish_frames.h"

#include <algorithm>
#include <utility>

#include "daemon/door/amqp/tap_lines.h"
#include "daemon/pipeline/fill_in.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

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

void PublishFrames::on_publish(Channel& channel, const proto::Frame& frame) {
  PublishAssembly& in = channel.in;
  in.stage = PublishAssembly::Stage::header;
  in.method.borrow(frame.raw);
  in.received_bytes = 0;
  in.start.clear();
  borrowing_.push_back(channel.id);
}

// In RabbitMQ's words.
void PublishFrames::out_of_place(const Channel& channel) {
  switch (channel.in.stage) {
    case PublishAssembly::Stage::idle:
      host_.close_connection(505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead");
      break;
    case PublishAssembly::Stage::header:
      host_.close_connection(505,
                             "UNEXPECTED_FRAME - expected content header for class 60, got non content "
                             "header frame instead",
                             proto::method::basic_publish);
      break;
    default:
      host_.close_connection(505,
                             "UNEXPECTED_FRAME - expected content body, got non content body frame instead",
                             proto::method::basic_publish);
  }
}

const config::Plan* PublishFrames::plan_for(const proto::Publish& publish, Bytes header_fields) const {
  const config::RoutingTable& routing = *state_.snapshot->routing;
  if (publish.exchange == route_exchange) return routing.by_name(publish.routing_key);
  return &routing.find(publish.exchange, publish.routing_key, header_fields);
}

bool PublishFrames::on_header(Channel& channel, const proto::Frame& frame) {
  using proto::method::basic_publish;
  PublishAssembly& in = channel.in;
  if (in.stage != PublishAssembly::Stage::header) {
    out_of_place(channel);
    return true;
  }
  if (frame.payload.size() < 14) {
    host_.close_connection(
        501, "FRAME_ERROR - content header of " + std::to_string(frame.payload.size()) + " bytes");
    return true;
  }
  if (load_u16(frame.payload.data()) != proto::class_basic) {
    host_.close_connection(505,
                           "UNEXPECTED_FRAME - expected content header for class 60, got one for class " +
                               std::to_string(load_u16(frame.payload.data())) + " instead",
                           basic_publish);
    return true;
  }
  auto publish = proto::decode_publish(in.method.payload());
  auto header = proto::decode_content_header(frame.payload);
  if (!publish) {
    host_.close_connection(501, "FRAME_ERROR - " + publish.error(), basic_publish);
    return true;
  }
  if (!header) {
    host_.close_connection(502, "SYNTAX_ERROR - " + header.error(), basic_publish);
    return true;
  }
  in.header.borrow(frame.raw);
  in.publish = publish.value();
  in.content = header.value();
  in.is_decoded = true;
  in.body_bytes = in.content.body_bytes;
  in.hop = in.publish.exchange == next_exchange;
  const config::Limits& limits = state_.config().limits;
  if (in.body_bytes > limits.message_bytes) {
    refuse(channel, plan_for(in.publish, in.content.header_fields()), 406,
           "PRECONDITION_FAILED - message of " + std::to_string(in.body_bytes) +
               " bytes is larger than limits.message_bytes (" + std::to_string(limits.message_bytes) + ")",
           true);
  } else if (!in.hop && in.content.has(proto::user_id) && state_.has_own_login &&
             in.content.text(proto::user_id) != state_.broker_user) {
    refuse(channel, plan_for(in.publish, in.content.header_fields()), 406,
           "PRECONDITION_FAILED - user_id property set to '" + std::string(in.content.text(proto::user_id)) +
               "' but authenticated user was '" + state_.broker_user + "'",
           true);
  } else if (in.body_bytes < proto::claim_prefix_bytes) {
    if (!begin(channel, in.publish, in.content, proto::Framing::raw)) return false;
  } else {
    in.stage = PublishAssembly::Stage::start;
  }
  if (in.body_bytes == 0) finish(channel);
  return true;
}

bool PublishFrames::on_body(Channel& channel, const proto::Frame& frame) {
  PublishAssembly& in = channel.in;
  using Stage = PublishAssembly::Stage;
  if (in.stage == Stage::idle || in.stage == Stage::header) {
    out_of_place(channel);
    return true;
  }
  if (frame.payload.size() > in.body_bytes - in.received_bytes) {
    host_.close_connection(
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
  }
  in.received_bytes += frame.payload.size();
  if (in.stage == Stage::relaying) {
    if (channel.publishes.empty()) {
      to_broker_.relay(frame.raw);
    } else {
      channel.publishes.append(frame.raw);
    }
  } else if (in.stage == Stage::job) {
    jobs_.add(in.job, frame.payload);
  }
  if (in.received_bytes == in.body_bytes) finish(channel);
  return true;
}

bool PublishFrames::is_offloaded(const config::Plan& plan, uint64_t body_bytes, proto::Framing framing,
                                 const proto::Publish& publish) {
  const config::ClaimCheck& rule = plan.claim_check;
  return rule.offloads() && body_bytes >= rule.threshold_bytes &&
         !(rule.pass_already_framed && framing != proto::Framing::raw) && !is_direct_reply(publish);
}

// A slip's step is sent to its pipeline's exchange, or to its queue where there is none. False: the broker
// was asked which, and has not answered yet.
bool PublishFrames::knows_destination(const config::Plan& plan, const proto::ContentHeader& header) {
  if (plan.pipeline == nullptr && !plan.itinerary) return true;
  if (exchanges_.know_all()) return true;
  if (carries_slip(header.header_fields())) return exchanges_.ask_all();
  return plan.pipeline == nullptr || exchanges_.know(plan.pipeline->name);
}

// The plan is looked up here and not with the header: what is half arrived when a new configuration comes has
// followed none yet. False: the publish has to wait for a transfer to end, or for an answer of the broker.
bool PublishFrames::begin(Channel& channel, const proto::Publish& publish, const proto::ContentHeader& header,
                          proto::Framing framing) {
  PublishAssembly& in = channel.in;
  const config::Plan* const plan = plan_for(publish, header.header_fields());
  if (plan == nullptr) {
    refuse(channel, nullptr, 404,
           "NOT_FOUND - no route '" + std::string(publish.routing_key) +
               "' of bellhop says where a message goes (by slip, to, or match without wildcards)",
           true);
    return true;
  }
  if (!knows_destination(*plan, header)) return false;
  std::erase(borrowing_, channel.id);
  const bool offloaded = is_offloaded(*plan, in.body_bytes, framing, publish);
  if (offloaded || in.hop) {
    if (!begin_job(channel, *plan, offloaded)) {
      borrowing_.push_back(channel.id);
      return false;
    }
    return true;
  }
  const bool frame_it = needs_inline_prefix(plan->claim_check, framing, is_direct_reply(publish));
  begin_relay(channel, *plan, publish, header, frame_it ? proto::claim_prefix_bytes : 0);
  return true;
}

void PublishFrames::begin_relay(Channel& channel, const config::Plan& plan, const proto::Publish& publish,
                                const proto::ContentHeader& header, size_t framing_bytes) {
  PublishAssembly& in = channel.in;
  const bool direct = channel.publishes.empty();
  Buffer queued;
  Buffer& out = direct ? to_broker_.tail() : queued;
  Stamped stamped =
      stamper_.write(out, channel.id,
                     {publish, header, *state_.snapshot->routing, plan, state_.snapshot->origin, nullptr,
                      framing_bytes, publish.exchange == route_exchange, &exchanges_.missing()},
                     state_.frame_bytes_max);
  if (stamped.refused_code != 0) {
    refuse(channel, &plan, stamped.refused_code, std::move(stamped.refused_text));
    return;
  }
  std::unique_ptr<Sent> sent;
  if (publish.mandatory) {
    const Bytes own_header = in.header.payload();
    const Bytes sent_header = stamped.as_it_is
                                  ? own_header
                                  : Bytes(out).subspan(stamped.header_at, out.size() - 1 - stamped.header_at);
    sent = PublishTracker::remember(publish, stamped, own_header, sent_header);
    sent->framed = framing_bytes != 0;
    sent->stored.sent();
  }
  std::unique_ptr<TapLine> tapped;
  if (state_.shared.taps.is_on()) tapped = std::make_unique<TapLine>(line_of(in, plan, stamped, out));
  const PublishMark mark = state_.meter.begin_publish(plan.counter, in.body_bytes);
  in.stage = PublishAssembly::Stage::relaying;
  if (direct) {
    if (tapped != nullptr) tell(state_, *tapped);
    if (stamped.as_it_is) {
      to_broker_.relay(in.method.view());
      to_broker_.relay(in.header.view());
    }
    if (framing_bytes != 0)
      proto::put_frame(to_broker_.tail(), proto::frame_body, channel.id, proto::claim_inline_prefix);
    if (!in.start.empty()) to_broker_.append(in.start);
    tracker_.published(channel, mark, std::move(sent));
    return;
  }
  if (stamped.as_it_is) {
    put(queued, in.method.view());
    put(queued, in.header.view());
  }
  if (framing_bytes != 0) proto::put_frame(queued, proto::frame_body, channel.id, proto::claim_inline_prefix);
  put(queued, in.start);
  PublishQueue::Entry entry;
  entry.frames = std::move(queued);
  entry.kind = PublishQueue::Entry::Kind::publish;
  entry.open = true;
  entry.sent = std::move(sent);
  entry.mark = mark;
  entry.tapped = std::move(tapped);
  channel.publishes.push(std::move(entry));
}

TapLine PublishFrames::line_of(const PublishAssembly& in, const config::Plan& plan, const Stamped& stamped,
                               Bytes written) const {
  const Bytes own = in.header.payload();
  const Bytes sent =
      stamped.as_it_is ? own : written.subspan(stamped.header_at, written.size() - 1 - stamped.header_at);
  return tap_line(state_, {in.publish.exchange, in.publish.routing_key, stamped.exchange, stamped.routing_key,
                           &plan, in.body_bytes, nullptr, table_of(sent), table_of(own)});
}

bool PublishFrames::begin_job(Channel& channel, const config::Plan& plan, bool offloaded) {
  if (offloaded && !jobs_.has_place()) return false;
  if (jobs_.begin(channel, plan, offloaded ? state_.snapshot->stores->find(plan.claim_check.store) : nullptr))
    return true;
  refuse(channel, &plan, 406,
         "PRECONDITION_FAILED - a hop of " + std::to_string(channel.in.body_bytes) +
             " bytes is not offloaded, and with the others that are arriving it is more than "
             "limits.inflight_bytes (" +
             std::to_string(state_.config().limits.inflight_bytes) +
             "): configure claim_check.store, or raise the limit");
  return true;
}

void PublishFrames::refuse(Channel& channel, const config::Plan* plan, uint16_t code, std::string text,
                           bool closes) {
  std::erase(borrowing_, channel.id);
  jobs_.refuse(channel, plan, code, std::move(text), closes);
}

// The last byte of the publish came.
void PublishFrames::finish(Channel& channel) {
  PublishAssembly& in = channel.in;
  PublishAssembly::Stage stage = std::exchange(in.stage, PublishAssembly::Stage::idle);
  if (stage == PublishAssembly::Stage::relaying) {
    if (!channel.publishes.empty()) {
      channel.publishes.back().open = false;
      return;
    }
    if (!channel.after_publish.empty()) {
      to_broker_.append(channel.after_publish);
      channel.after_publish.clear();
    }
    return;
  }
  if (stage == PublishAssembly::Stage::job) jobs_.finish(std::exchange(in.job, nullptr));
}

void PublishFrames::detach_borrowed() {
  for (uint16_t id : borrowing_) {
    Channel* channel = channels_.find(id);
    if (channel == nullptr) continue;
    channel->in.method.detach();
    channel->in.is_decoded = false;
    if (channel->in.stage == PublishAssembly::Stage::start) channel->in.header.detach();
  }
}

void PublishFrames::drop_incomplete(Channel& channel) {
  PublishAssembly& in = channel.in;
  if (in.stage == PublishAssembly::Stage::idle || channel.is_half_sent()) return;
  // Only the last entry of the queue can be incomplete.
  if (in.stage == PublishAssembly::Stage::job ||
      (in.stage == PublishAssembly::Stage::relaying && !channel.publishes.empty())) {
    channel.publishes.drop_back();
    in.job.reset();
  }
  in.stage = PublishAssembly::Stage::idle;
  std::erase(borrowing_, channel.id);
}

void PublishFrames::abandon(Channel& channel) {
  // The rest of a publish that the broker has half of still goes there.
  const bool half_sent = channel.is_half_sent();
  channel.publishes.clear();
  channel.in.job.reset();
  if (!half_sent) channel.in.stage = PublishAssembly::Stage::idle;
  channel.after_publish.clear();
  std::erase(borrowing_, channel.id);
}

}  // namespace bellhop
