// ClientFrames: the frames of the client for its channels. Opens channels, and gives publishes, methods and
// closes to the parts that they are for.
//
// One thread (the session's). Hot path.
#pragma once

#include "daemon/door/amqp/up/publish_frames.h"
#include "daemon/door/amqp/up/publish_pump.h"

namespace bellhop {

class ClientFrames {
 public:
  ClientFrames(const SessionState& state, SessionHost& host, Channels& channels, BrokerWriter& to_broker,
               Closing& closing, PublishFrames& publishes, PublishPump& pump)
      : state_(state),
        host_(host),
        channels_(channels),
        to_broker_(to_broker),
        closing_(closing),
        publishes_(publishes),
        pump_(pump) {}

  // A frame for a channel (not 0) of an open connection. False: it has to wait for a transfer to end, and is
  // to be given again.
  bool on_frame(const proto::Frame& frame);

  // The whole publishes at the front of what the client sent, as far as they can be handled at once. Returns
  // how many bytes they have; what follows goes to on_frame.
  size_t on_whole_publishes(Bytes unread);

 private:
  bool on_channel_frame(Channel& channel, const proto::Frame& frame);
  bool on_publish_frame(Channel& channel, const proto::Frame& frame);

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  BrokerWriter& to_broker_;
  Closing& closing_;
  PublishFrames& publishes_;
  PublishPump& pump_;
};

}  // namespace bellhop
