// Closing: how a channel ends (ARCHITECTURE.md, "A channel that bellhop closes"). The one place that changes
// a ChannelClose.
//
//   the client closes ─► relayed ─► the broker's close-ok goes down, behind the returns ─► forgotten
//   the broker closes ─► relayed ─► the client's close-ok goes up ──────────────────────► forgotten
//   bellhop closes ────► the broker is told ─► its close-ok, and the returns before it ─► the client is told
//                                                              ─► its close-ok ─────────► forgotten
//
// One thread (the session's).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/door/amqp/broker_writer.h"
#include "daemon/door/amqp/channels.h"
#include "daemon/door/amqp/client_writer.h"
#include "daemon/door/amqp/halves.h"
#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/session_state.h"

namespace bellhop {

class Closing {
 public:
  Closing(const SessionState& state, SessionHost& host, Channels& channels, ClientWriter& to_client,
          BrokerWriter& to_broker, UpperHalf& upper, LowerHalf& lower)
      : state_(state),
        host_(host),
        channels_(channels),
        to_client_(to_client),
        to_broker_(to_broker),
        upper_(upper),
        lower_(lower) {}

  // Closes a channel by bellhop's own decision, on both legs: the broker is told at once, the client when the
  // broker's answers to what the channel said before have passed. `method`: the client's, 0 for none.
  void close(Channel& channel, uint16_t code, const std::string& text, uint32_t method = 0);
  // The close that waited until the broker has the whole publish that was being relayed. Precondition:
  // channel.end.waits_for_whole().
  void close_when_whole(Channel& channel);

  // The client's channel.close is about to go up.
  void on_client_close(Channel& channel);
  // A frame of the client for a channel that is not open, but for one of a half-sent publish. True: the
  // channel is forgotten, and the frame opens it anew.
  bool on_client_frame(Channel& channel, const proto::Frame& frame);
  // The broker's channel.close, and its channel.close-ok.
  void on_broker_close(Channel& channel, const proto::Frame& frame);
  void on_broker_close_ok(Channel& channel, const proto::Frame& frame);

  // Tells the client of closes that it may know by now, and forgets channels whose last return is handed
  // over. Once a turn, before the flush. True: a channel gave back what it held.
  bool pump();
  bool has_untold() const { return !untold_.empty(); }
  // Ends a channel at once, its returns included.
  void forget(uint16_t id);
  void forget_all();

 private:
  bool tell_untold();
  bool end_relayed(Channel& channel);
  void abandon(Channel& channel);

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  ClientWriter& to_client_;
  BrokerWriter& to_broker_;
  UpperHalf& upper_;
  LowerHalf& lower_;
  std::vector<uint16_t> untold_;   // channels that bellhop closes, and whose client does not know yet
  std::vector<uint16_t> unended_;  // channels whose close-ok stands behind their returns
};

}  // namespace bellhop
