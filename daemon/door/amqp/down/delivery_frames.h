// DeliveryFrames: a content's frames as they come from the broker (basic.deliver, get-ok, return). Relays
// what needs nothing, strips inline frames, writes returns as the client sent them, collects claims for the
// fetcher.
//
//   idle ─deliver, get-ok, return─► header ─content header─► start ─3 bytes─► relaying ──┐
//                                                              │ a claim ───► collecting ─┤ last byte
//                                                              └ draining ──► dropping ───┴─► idle
//
// One thread (the session's). Hot path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/door/amqp/down/fetcher.h"
#include "daemon/door/amqp/down/handover.h"

namespace bellhop {

class DeliveryFrames {
 public:
  DeliveryFrames(const SessionState& state, Channels& channels, SessionMemory& memory,
                 ClientWriter& to_client, PublishTracker& tracker, Fetcher& fetcher, Handover& handover)
      : state_(state),
        channels_(channels),
        memory_(memory),
        to_client_(to_client),
        tracker_(tracker),
        fetcher_(fetcher),
        handover_(handover) {}

  // The frames of a content, in their order. False: the broker broke the protocol.
  bool begin(Channel& channel, DeliveryKind kind, const proto::Frame& frame);
  bool on_header(Channel& channel, const proto::Frame& frame);
  bool on_body(Channel& channel, const proto::Frame& frame);
  // Copies what is still borrowed from the broker link's buffer. At the end of a turn.
  void detach_borrowed();

  // The channel ends: what is arriving is dropped, but for a content that is half out.
  void abandon(Channel& channel);

 private:
  static void put_original_return(Buffer& out, const Channel& channel);
  void remember_input(Channel& channel, config::PipelineStep input, std::string_view exchange);
  void drop(Channel& channel);
  void start_body(Channel& channel, const proto::Frame& frame, bool whole);
  void begin_plain(Channel& channel, size_t strip_bytes);
  void relay_body(Channel& channel, const proto::Frame& frame);
  void reframe_body(Channel& channel, Bytes payload, bool last);
  void finish_plain(Channel& channel);
  void finish_claim(Channel& channel);
  std::shared_ptr<Delivery> new_delivery(Channel& channel);

  const SessionState& state_;
  Channels& channels_;
  SessionMemory& memory_;
  ClientWriter& to_client_;
  PublishTracker& tracker_;
  Fetcher& fetcher_;
  Handover& handover_;
  std::vector<uint16_t> borrowing_;  // channels whose method and header may still be borrowed
};

}  // namespace bellhop
