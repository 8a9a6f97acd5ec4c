#include "daemon/door/amqp/down/broker_frames.h"

namespace bellhop {

using namespace proto;

bool BrokerFrames::on_frame(Channel& channel, const Frame& frame) {
  // The broker has closed the channel and sends nothing more on it.
  if (channel.end.is_over_at_broker()) return true;
  if (frame.type == frame_method) return on_method(channel, frame);
  if (channel.has_queued_deliveries()) return on_queued_content(channel, frame);
  return frame.type == frame_header ? contents_.on_header(channel, frame) : contents_.on_body(channel, frame);
}

// Handed over in its turn: what the broker says next may be relayed if nothing waits any more.
bool BrokerFrames::on_queued_content(Channel& channel, const Frame& frame) {
  const bool is_right =
      frame.type == frame_header ? contents_.on_header(channel, frame) : contents_.on_body(channel, frame);
  if (channel.out.stage == DeliveryAssembly::Stage::idle) pump_.pump(channel);
  return is_right;
}

bool BrokerFrames::on_method(Channel& channel, const Frame& frame) {
  uint32_t number = method_number(frame.payload);
  if (channel.out.stage != DeliveryAssembly::Stage::idle) return false;
  switch (number) {
    case method::basic_deliver:
      return contents_.begin(channel, DeliveryKind::deliver, frame);
    case method::basic_get_ok:
      return contents_.begin(channel, DeliveryKind::get_ok, frame);
    case method::basic_return:
      return contents_.begin(channel, DeliveryKind::returned, frame);
    case method::basic_ack:
      tracker_.on_confirm(channel, frame, false);
      return true;
    case method::basic_nack:
      tracker_.on_confirm(channel, frame, true);
      return true;
    case method::channel_close:
      closing_.on_broker_close(channel, frame);
      return true;
    case method::channel_close_ok:
      closing_.on_broker_close_ok(channel, frame);
      return true;
    case method::tx_commit_ok:
    case method::tx_rollback_ok:
      if (!tracker_.on_tx_ok(channel)) return true;
      break;
    case method::basic_recover_ok:
      if (channel.recovers_awaited != 0) channel.recovers_awaited--;
      break;
    case method::basic_get_empty:
      if (!channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
      break;
    case method::basic_consume_ok:
      if (auto tag = decode_consume_ok(frame.payload)) channel.consumers.accept(tag.value());
      break;
    case method::basic_cancel_ok:
    case method::basic_cancel:
      if (end_consumer(channel, frame, number == method::basic_cancel_ok)) return true;
      break;
    case method::queue_declare_ok:
      if (auto queue = decode_queue_declare_ok(frame.payload)) {
        channel.last_queue = queue.value();
        if (!channel.declares_awaited.empty()) {
          if (channel.declares_awaited.front()) state_.note_exclusive(channel.last_queue);
          channel.declares_awaited.pop_front();
        }
      }
      break;
    default:
      break;
  }
  to_client_.relay_answer(channel, frame.raw);
  return true;
}

// A consumer ended: the client cancelled it (`is_asked`) or the broker did. True: the frame is not for the
// client, or follows the deliveries that the consumer still gets.
bool BrokerFrames::end_consumer(Channel& channel, const Frame& frame, bool is_asked) {
  // What came before is handed over while its consumer is known.
  if (channel.has_queued_deliveries()) pump_.pump(channel);
  auto tag = decode_consume_ok(frame.payload);
  const bool is_wanted = channel.consumers.end(tag ? tag.value() : std::string_view{}, is_asked);
  if (!tag) return !is_wanted;
  return pump_.end_consumer(channel, tag.value(), is_wanted ? frame.raw : Bytes{}) || !is_wanted;
}

}  // namespace bellhop
