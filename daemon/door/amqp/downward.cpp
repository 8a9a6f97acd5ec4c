#include "daemon/door/amqp/downward.h"

#include <spdlog/spdlog.h>

#include "daemon/door/amqp/deliverer.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/undeliverable.h"

namespace bellhop {

using namespace proto;

bool Downward::on_frame(Channel& channel, const Frame& frame) {
  // The broker has closed the channel and sends nothing more on it.
  if (channel.state == Channel::State::local_closing && channel.broker_close_ok) return true;
  switch (frame.type) {
    case frame_method:
      return on_method(channel, frame);
    case frame_header:
      return core_.deliverer->on_header(channel, frame);
    default:
      return core_.deliverer->on_body(channel, frame);
  }
}

bool Downward::on_method(Channel& channel, const Frame& frame) {
  uint32_t number = method_number(frame.payload);
  if (channel.out.stage != DeliveryAssembly::Stage::idle) return false;
  switch (number) {
    case method::basic_deliver:
      return core_.deliverer->begin(channel, DeliveryKind::deliver, frame);
    case method::basic_get_ok:
      return core_.deliverer->begin(channel, DeliveryKind::get_ok, frame);
    case method::basic_return:
      return core_.deliverer->begin(channel, DeliveryKind::returned, frame);
    case method::basic_ack:
      core_.outcomes->on_confirm(channel, frame, false);
      return true;
    case method::basic_nack:
      core_.outcomes->on_confirm(channel, frame, true);
      return true;
    case method::channel_close:
      on_close(channel, frame);
      return true;
    case method::channel_close_ok:
      on_close_ok(channel, frame);
      return true;
    case method::tx_commit_ok:
    case method::tx_rollback_ok:
      if (!core_.outcomes->on_tx_ok(channel)) return true;
      break;
    case method::basic_recover_ok:
      if (channel.recovers_awaited != 0) channel.recovers_awaited--;
      break;
    case method::basic_get_empty:
      if (!channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
      break;
    case method::basic_consume_ok:
      if (auto tag = decode_consume_ok(frame.payload); tag && !channel.consumes_awaited.empty()) {
        channel.consumers.insert_or_assign(tag.value(), std::move(channel.consumes_awaited.front()));
        channel.consumes_awaited.pop_front();
      }
      break;
    case method::basic_cancel_ok:
    case method::basic_cancel:
      if (end_consumer(channel, frame, number == method::basic_cancel_ok)) return true;
      break;
    case method::queue_declare_ok:
      if (auto queue = decode_queue_declare_ok(frame.payload)) {
        channel.last_queue = queue.value();
        if (!channel.declares_awaited.empty()) {
          if (channel.declares_awaited.front()) core_.note_exclusive(channel.last_queue);
          channel.declares_awaited.pop_front();
        }
      }
      break;
    default:
      break;
  }
  answer(channel, frame);
  return true;
}

// A consumer ended: the client cancelled it (`asked`) or the broker did. True: the frame is not for the
// client, or follows the deliveries that the consumer still gets.
bool Downward::end_consumer(Channel& channel, const Frame& frame, bool asked) {
  bool wanted = true;
  if (asked && !channel.cancels_awaited.empty()) {
    wanted = channel.cancels_awaited.front();
    channel.cancels_awaited.pop_front();
  }
  auto tag = decode_consume_ok(frame.payload);
  if (!tag) return !wanted;
  auto found = channel.consumers.find(tag.value());
  if (found != channel.consumers.end()) {
    Consumer& consumer = found->second;
    if (asked && consumer.cancels_awaited != 0) consumer.cancels_awaited--;
    if (!asked || consumer.is_ended) {
      if (consumer.no_ack) channel.no_ack_consumers--;
      channel.consumers.erase(found);
    }
  }
  return core_.lanes->end_consumer(channel, tag.value(), wanted ? frame.raw : Bytes{}) || !wanted;
}

// An answer of the broker goes to the client, in its place behind the returns that came before it.
void Downward::answer(Channel& channel, const Frame& frame) {
  if (!core_.lanes->waits_behind_returns(channel, frame.raw)) core_.writer->relay_whole(frame.raw);
}

void Downward::on_close(Channel& channel, const Frame& frame) {
  auto close = decode_close(frame.payload);
  if (close) {
    spdlog::info("session={} channel={} closed by broker code={} reason=\"{}\"", core_.session_id, channel.id,
                 close.value().reply_code, close.value().reply_text);
  }
  if (channel.untold) {
    // The closes crossed: the broker sent its own before it read bellhop's. Its close-ok is still to come.
    put_empty_method(core_.broker->outbox().tail(), method::channel_close_ok, channel.id);
    if (close)
      channel.untold = {close.value().reply_code, std::string(close.value().reply_text),
                        uint32_t{close.value().class_id} << 16 | close.value().method_id,
                        channel.untold->answers_client};
    return;
  }
  core_.undeliverable->give_up_held(channel);
  if (channel.state == Channel::State::open) channel.state = Channel::State::broker_closing;
  channel.client_owes_close_ok = true;
  if (channel.close_waits()) {
    // The closes crossed: bellhop answers the client's as the broker would.
    core_.broker->outbox().append(channel.queue.back().frames);
    channel.broker_owes_close_ok = true;
  }
  core_.abandon(channel);
  answer(channel, frame);
}

void Downward::on_close_ok(Channel& channel, const Frame& frame) {
  if (channel.state == Channel::State::local_closing) {
    channel.broker_close_ok = true;
    return;
  }
  answer(channel, frame);
  channel.broker_owes_close_ok = false;
  core_.end_relayed_close(channel);
}

}  // namespace bellhop
