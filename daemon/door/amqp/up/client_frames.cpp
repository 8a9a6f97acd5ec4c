#include "daemon/door/amqp/up/client_frames.h"

#include <string>

namespace bellhop {

using namespace proto;

bool ClientFrames::on_frame(const Frame& frame) {
  Channel* channel = channels_.find(frame.channel);
  if (channel != nullptr) return on_channel_frame(*channel, frame);
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::channel_close_ok) return true;
  if (frame.type != frame_method) {
    host_.close_connection(505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead");
    return true;
  }
  if (number != method::channel_open) {
    host_.close_connection(504, "CHANNEL_ERROR - expected 'channel.open'", number);
    return true;
  }
  if (frame.channel > state_.client_channel_max) {
    host_.close_connection(530,
                           "NOT_ALLOWED - channel " + std::to_string(frame.channel) +
                               " is above the negotiated channel_max (" +
                               std::to_string(state_.client_channel_max) + ")",
                           number);
    return true;
  }
  channels_.open(frame.channel);
  to_broker_.relay(frame.raw);
  return true;
}

size_t ClientFrames::on_whole_publishes(Bytes unread) {
  size_t taken = 0;
  while (const auto whole = whole_publish(unread.subspan(taken), state_.frame_bytes_max)) {
    Channel* const channel = channels_.find(whole->channel);
    if (channel == nullptr || !channel->end.is_open() || !publishes_.on_whole(*channel, *whole)) break;
    taken += whole->raw().size();
  }
  return taken;
}

bool ClientFrames::on_channel_frame(Channel& channel, const Frame& frame) {
  if (!channel.end.is_open()) {
    // The broker has the first frames of this publish, and cannot read anything else before the last one.
    if (frame.type == frame_body && !channel.end.is_local() && channel.is_half_sent())
      return publishes_.on_body(channel, frame);
    return closing_.on_client_frame(channel, frame) ? on_frame(frame) : true;
  }
  if (frame.type == frame_header || frame.type == frame_body) return on_publish_frame(channel, frame);
  if (frame.type == frame_heartbeat) {
    host_.close_connection(505, "UNEXPECTED_FRAME - a heartbeat on channel " + std::to_string(channel.id));
    return true;
  }
  if (channel.in.stage != PublishAssembly::Stage::idle) {
    publishes_.out_of_place(channel);
    return true;
  }
  if (method_number(frame.payload) == method::basic_publish) {
    publishes_.on_publish(channel, frame);
  } else {
    pump_.method(channel, frame);
  }
  return true;
}

bool ClientFrames::on_publish_frame(Channel& channel, const Frame& frame) {
  const bool is_taken =
      frame.type == frame_header ? publishes_.on_header(channel, frame) : publishes_.on_body(channel, frame);
  if (channel.end.waits_for_whole() && !channel.is_half_sent()) closing_.close_when_whole(channel);
  if (!channel.publishes.empty()) pump_.pump(channel);
  return is_taken;
}

}  // namespace bellhop
