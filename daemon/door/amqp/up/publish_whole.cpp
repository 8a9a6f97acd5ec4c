// A publish whose frames are all there when it is looked at, which most small ones are. What its method leads
// to is remembered (LastPublish), so a publish that repeats it costs a comparison; and one that nothing is
// added to is relayed without being decoded. Everything that is not usual goes frame by frame.
#include <algorithm>

#include "daemon/door/amqp/up/publish_frames.h"
#include "daemon/pipeline/fill_in.h"

namespace bellhop {

namespace {

constexpr uint16_t flag(proto::Property which) {
  return static_cast<uint16_t>(0x8000u >> which);
}

Bytes payload_of(Bytes raw) {
  return raw.subspan(proto::frame_head_bytes, raw.size() - proto::frame_overhead_bytes);
}

bool is_same(Bytes one, Bytes other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

bool changes_its_publishes(const config::Plan& plan) {
  return plan.pipeline != nullptr || plan.itinerary || plan.to_exchange || plan.to_routing_key ||
         plan.stamp.envelope || !plan.headers.empty();
}

}  // namespace

bool PublishFrames::on_whole(Channel& channel, const proto::WholePublish& whole) {
  if (channel.in.stage != PublishAssembly::Stage::idle || !channel.publishes.empty() ||
      state_.shared.taps.is_on())
    return false;
  LastPublish& last = channel.last_publish;
  const bool is_known =
      last.generation == state_.snapshot->generation && is_same(whole.method(), last.method);
  if (!is_known && !look_up(last, whole.method())) return false;
  const Bytes body = payload_of(whole.body());
  if (body.size() < proto::claim_prefix_bytes || body.size() >= last.body_bytes_end ||
      proto::framing_of(body.first(proto::claim_prefix_bytes)) != proto::Framing::raw ||
      ((whole.flags & flag(proto::user_id)) != 0 && state_.has_own_login))
    return false;
  const Bytes header = payload_of(whole.header());
  const bool is_relayed = last.relayed_flags && (whole.flags & *last.relayed_flags) == *last.relayed_flags &&
                          (whole.flags & flag(proto::headers)) == 0;
  if (is_relayed) {
    if (!proto::are_whole_properties(whole.flags, header.subspan(proto::header_fixed_bytes))) return false;
    to_broker_.relay(whole.raw());
  } else if (!stamp_whole(channel, whole, header)) {
    return false;
  }
  tracker_.published(channel, state_.meter.begin_publish(last.plan->counter, body.size()), nullptr);
  return true;
}

// False: nothing was written.
bool PublishFrames::stamp_whole(const Channel& channel, const proto::WholePublish& whole, Bytes header) {
  const LastPublish& last = channel.last_publish;
  const auto decoded = proto::decode_content_header(header);
  if (!decoded || (!exchanges_.know_all() && !knows_destination(*last.plan, decoded.value()))) return false;
  const Stamped stamped =
      stamper_.write(to_broker_.tail(), channel.id,
                     {last.publish, decoded.value(), *state_.snapshot->routing, *last.plan,
                      state_.snapshot->origin, nullptr, 0, last.is_by_name, &exchanges_.missing()},
                     state_.frame_bytes_max);
  if (stamped.refused_code != 0) return false;
  if (stamped.as_it_is) {
    to_broker_.relay(whole.raw());
  } else {
    to_broker_.relay(whole.body());
  }
  return true;
}

// False: what the method leads to is not remembered, because it is no usual one or depends on more.
bool PublishFrames::look_up(LastPublish& last, Bytes method) const {
  if (state_.snapshot->routing->matches_on_headers()) return false;
  last.generation = 0;
  last.method.assign(method.begin(), method.end());
  const auto decoded = proto::decode_publish(payload_of(last.method));
  if (!decoded || decoded.value().exchange == next_exchange || decoded.value().mandatory) return false;
  last.publish = decoded.value();
  last.plan = plan_for(last.publish, {});
  if (last.plan == nullptr) return false;
  const config::ClaimCheck& rule = last.plan->claim_check;
  const bool is_reply = is_direct_reply(last.publish);
  if (needs_inline_prefix(rule, proto::Framing::raw, is_reply)) return false;
  last.body_bytes_end = state_.config().limits.message_bytes + 1;
  if (rule.offloads() && !is_reply) last.body_bytes_end = std::min(last.body_bytes_end, rule.threshold_bytes);
  last.relayed_flags.reset();
  last.is_by_name = last.publish.exchange == route_exchange;
  if (!last.is_by_name && !changes_its_publishes(*last.plan)) {
    const config::Stamp& stamp = last.plan->stamp;
    const unsigned id = stamp.fill_message_id ? flag(proto::message_id) : 0u;
    const unsigned mode = stamp.delivery_mode != config::DeliveryMode::keep ? flag(proto::delivery_mode) : 0u;
    last.relayed_flags = static_cast<uint16_t>(id | mode);
  }
  last.generation = state_.snapshot->generation;
  return true;
}

}  // namespace bellhop
