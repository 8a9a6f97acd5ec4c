#include "daemon/door/amqp/downward.h"

#include <spdlog/spdlog.h>

#include "daemon/door/amqp/deliverer.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/undeliverable.h"

namespace bellhop {

using namespace proto;

bool Downward::on_frame(Channel& channel, const Frame& frame) {
  // A content that is half out to the client is finished even on a channel that bellhop closed: nothing may
  // stand inside it.
  if (channel.state == Channel::State::local_closing && frame.type != frame_method &&
      !channel.out.is_half_out())
    return true;
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
  if (channel.state == Channel::State::local_closing) {
    if (number == method::channel_close_ok) on_close_ok(channel, frame);
    if (number == method::channel_close) {
      put_empty_method(core_.broker->outbox().tail(), method::channel_close_ok, channel.id);
    }
    return true;
  }
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
      if (!core_.outcomes->on_tx_ok(channel) || waits_behind_returns(channel, frame)) return true;
      break;
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
      if (auto tag = decode_consume_ok(frame.payload)) {
        auto found = channel.consumers.find(tag.value());
        if (found != channel.consumers.end()) {
          if (found->second.no_ack) channel.no_ack_consumers--;
          channel.consumers.erase(found);
        }
        if (core_.lanes->end_consumer(channel, tag.value(), frame.raw)) return true;
      }
      break;
    case method::queue_declare_ok:
      if (auto queue = decode_queue_declare_ok(frame.payload)) {
        channel.last_queue = queue.value();
        if (!channel.declares_awaited.empty()) {
          if (channel.declares_awaited.front()) core_.exclusive_queues.insert(channel.last_queue);
          channel.declares_awaited.pop_front();
        }
      }
      break;
    default:
      break;
  }
  core_.writer->relay_whole(frame.raw);
  return true;
}

// True: the frame goes to the client behind the returns that are still being fetched. A transaction's returns
// come before its commit-ok.
bool Downward::waits_behind_returns(Channel& channel, const Frame& frame) {
  if (channel.returns.empty()) return false;
  core_.lanes->push_frames(channel, DeliveryKind::returned, frame.raw);
  return true;
}

void Downward::on_close(Channel& channel, const Frame& frame) {
  auto close = decode_close(frame.payload);
  if (close) {
    spdlog::info("session={} channel={} closed by broker code={} reason=\"{}\"", core_.session_id, channel.id,
                 close.value().reply_code, close.value().reply_text);
  }
  core_.undeliverable->give_up_held(channel);
  if (channel.state == Channel::State::open) channel.state = Channel::State::broker_closing;
  channel.client_owes_close_ok = true;
  if (channel.close_waits()) {
    // The closes cross: the client's is answered as the broker answers one that it reads now.
    core_.broker->outbox().append(channel.queue.back().frames);
    channel.broker_owes_close_ok = true;
  }
  core_.abandon(channel);
  core_.writer->relay_whole(frame.raw);
}

void Downward::on_close_ok(Channel& channel, const Frame& frame) {
  if (channel.state == Channel::State::local_closing) {
    channel.broker_close_ok = true;
    core_.end_local_close(channel);
    return;
  }
  core_.writer->relay_whole(frame.raw);
  channel.broker_owes_close_ok = false;
  core_.end_relayed_close(channel);
}

}  // namespace bellhop
