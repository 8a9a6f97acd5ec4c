#include "daemon/door/amqp/down/parker.h"

#include "daemon/broker/private_channel.h"
#include "daemon/pipeline/park.h"

namespace bellhop {

namespace {

constexpr uint64_t refusal_ms = 10000;
constexpr size_t refusals_max = 1000;

}  // namespace

Result<void> Parker::park(const Delivery& delivery, const std::string& reason, Done done) {
  if (private_channel_ == nullptr) {
    return Error{
        "the broker allows one channel a connection, and a park needs a second: raise its channel_max"};
  }
  PrivateChannel::Item item;
  std::string queue = parked_queue_of(delivery.queue, state_.exclusive_queues.contains(delivery.queue));
  if (auto refused = refused_until_ms_.find(queue); refused != refused_until_ms_.end()) {
    if (host_.now_ms() < refused->second) {
      return Error{"queue '" + queue + "' refused the one before it"};
    }
    refused_until_ms_.erase(refused);
  }
  const uint16_t channel = private_channel_->id();
  if (!put_park(item.frames, channel, queue, delivery.header, delivery.body.size(), reason,
                state_.broker_user, state_.broker_frame_bytes_max)) {
    return Error{"its headers do not fit the broker's frame_max (" +
                 std::to_string(state_.broker_frame_bytes_max) + " bytes), not even without a reason"};
  }
  proto::put_body_frames(item.frames, channel, delivery.body, state_.broker_frame_bytes_max);
  item.routing_key = item.declare_queue = queue;
  item.message_id = proto::decode_content_header(delivery.header).value().text(proto::message_id);
  item.done = [this, queue, done = std::move(done)](const PrivateChannel::Outcome& outcome) {
    using Kind = PrivateChannel::Outcome::Kind;
    if (outcome.kind == Kind::acked) {
      done(Outcome::parked, {});
      return;
    }
    if (outcome.kind == Kind::refused && refused_until_ms_.size() < refusals_max)
      refused_until_ms_[queue] = host_.now_ms() + refusal_ms;
    done(outcome.kind == Kind::refused ? Outcome::never : Outcome::not_now,
         "queue '" + queue + "' did not take it: " + outcome.text);
  };
  private_channel_->post(std::move(item));
  return {};
}

}  // namespace bellhop
