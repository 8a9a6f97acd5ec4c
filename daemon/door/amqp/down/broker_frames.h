// BrokerFrames: the frames of the broker for the client's channels. Keeps the books on what is awaited,
// relays what needs nothing, and gives contents, confirms and closes to the parts that they are for.
//
// One thread (the session's). Hot path.
#pragma once

#include "daemon/door/amqp/closing.h"
#include "daemon/door/amqp/down/delivery_frames.h"
#include "daemon/door/amqp/down/delivery_pump.h"

namespace bellhop {

class BrokerFrames {
 public:
  BrokerFrames(SessionState& state, ClientWriter& to_client, PublishTracker& tracker, Closing& closing,
               DeliveryFrames& contents, DeliveryPump& pump)
      : state_(state),
        to_client_(to_client),
        tracker_(tracker),
        closing_(closing),
        contents_(contents),
        pump_(pump) {}

  // A frame for a client channel (not 0, not the private channel). False: the broker broke the protocol.
  bool on_frame(Channel& channel, const proto::Frame& frame);

 private:
  bool on_queued_content(Channel& channel, const proto::Frame& frame);
  bool on_method(Channel& channel, const proto::Frame& frame);
  bool end_consumer(Channel& channel, const proto::Frame& frame, bool is_asked);

  SessionState& state_;
  ClientWriter& to_client_;
  PublishTracker& tracker_;
  Closing& closing_;
  DeliveryFrames& contents_;
  DeliveryPump& pump_;
};

}  // namespace bellhop
