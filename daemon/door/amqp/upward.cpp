#include "daemon/door/amqp/upward.h"

#include <string>

#include "daemon/door/amqp/publisher.h"
#include "daemon/door/amqp/releaser.h"

namespace bellhop {

using namespace proto;

bool Upward::on_frame(const Frame& frame) {
  Channel* channel = core_.channel(frame.channel);
  if (channel != nullptr) return on_channel_frame(*channel, frame);
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::channel_close_ok) return true;
  if (frame.type != frame_method) {
    core_.close_connection(505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead");
    return true;
  }
  if (number != method::channel_open) {
    core_.close_connection(504, "CHANNEL_ERROR - expected 'channel.open'", number);
    return true;
  }
  if (frame.channel > core_.client_channel_max) {
    core_.close_connection(530,
                           "NOT_ALLOWED - channel " + std::to_string(frame.channel) +
                               " is above the negotiated channel_max (" +
                               std::to_string(core_.client_channel_max) + ")",
                           number);
    return true;
  }
  core_.open_channel(frame.channel);
  core_.broker->outbox().borrow(frame.raw);
  return true;
}

bool Upward::on_channel_frame(Channel& channel, const Frame& frame) {
  using State = Channel::State;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  switch (channel.state) {
    case State::open:
      break;
    case State::client_closing:
    case State::broker_closing:
      // The broker has the first frames of this publish, and cannot read anything else before the last one.
      if (frame.type == frame_body && SessionCore::is_half_sent(channel))
        return core_.publisher->on_body(channel, frame);
      if (number == method::channel_close && !channel.broker_owes_close_ok) {
        core_.broker->outbox().borrow(frame.raw);
        channel.broker_owes_close_ok = true;
      } else if (number == method::channel_open && channel.state == State::client_closing) {
        // Before its close-ok: the broker's answer, which the client must not wait for in vain.
        core_.close_connection(504, "CHANNEL_ERROR - second 'channel.open' seen", number);
      } else if (number == method::channel_close_ok && channel.client_owes_close_ok) {
        core_.broker->outbox().borrow(frame.raw);
        channel.client_owes_close_ok = false;
        core_.end_relayed_close(channel);
      }
      return true;
    case State::local_closing:
      // bellhop ignores what follows the client's close, as the broker does.
      if (channel.untold) {
        if (number == method::channel_close) channel.untold->answers_client = true;
      } else if (number == method::channel_close) {
        channel.closes_crossed = true;
        put_empty_method(core_.writer->own(), method::channel_close_ok, channel.id);
      } else if (number == method::channel_close_ok) {
        core_.forget_channel(channel.id);
      } else if (number == method::channel_open && channel.closes_crossed) {
        // The closes crossed: the client has its answer already.
        core_.forget_channel(channel.id);
        return on_frame(frame);
      }
      return true;
  }
  switch (frame.type) {
    case frame_header:
      return core_.publisher->on_header(channel, frame);
    case frame_body:
      return core_.publisher->on_body(channel, frame);
    case frame_heartbeat:
      core_.close_connection(505, "UNEXPECTED_FRAME - a heartbeat on channel " + std::to_string(channel.id));
      return true;
    default:
      break;
  }
  if (channel.in.stage != PublishAssembly::Stage::idle) {
    core_.publisher->out_of_place(channel);
    return true;
  }
  if (number == method::basic_publish) return core_.publisher->on_publish(channel, frame);
  core_.releaser->method(channel, frame);
  return true;
}

}  // namespace bellhop
