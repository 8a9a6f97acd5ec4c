// Deliverer: a content's frames as they come from the broker (basic.deliver, get-ok, return). Relays what
// needs nothing, strips inline frames, writes returns as the client sent them, collects claim checks for the
// fetcher.
//
//   idle ─deliver, get-ok, return─► header ─content header─► start ─3 bytes─► relaying ──┐
//                                                              │ a check ───► collecting ─┤ last byte
//                                                              └ draining ──► dropping ───┴─► idle
//
// One thread (the session's). Hot path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Deliverer {
 public:
  explicit Deliverer(SessionCore& core) : core_(core) {}

  // The frames of a content, in their order. False: the broker broke the protocol.
  bool begin(Channel& channel, DeliveryKind kind, const proto::Frame& frame);
  bool on_header(Channel& channel, const proto::Frame& frame);
  bool on_body(Channel& channel, const proto::Frame& frame);
  // Copies what is still borrowed from the broker link's buffer. At the end of a turn.
  void detach_held();

  // The client has a content whole: its tag is the client's now, or acknowledged; a return's confirm
  // (client_tag) may follow.
  void handed(Channel& channel, DeliveryKind kind, uint64_t tag, bool no_ack, bool settle_when_handed,
              uint64_t client_tag);
  // The channel ends: what is arriving is dropped, but for a content that is half out.
  void abandon(Channel& channel);

 private:
  void remember_input(Channel& channel, config::PipelineStep input, std::string_view exchange);
  void drop(Channel& channel);
  void start_body(Channel& channel, const proto::Frame& frame, bool whole);
  void begin_plain(Channel& channel, size_t strip_bytes);
  void relay_body(Channel& channel, const proto::Frame& frame);
  void reframe_body(Channel& channel, Bytes payload, bool last);
  void finish_plain(Channel& channel);
  void finish_check(Channel& channel);
  std::shared_ptr<Delivery> new_delivery(Channel& channel);
  std::string queue_of(Channel& channel, std::string_view consumer_tag) const;

  SessionCore& core_;
  std::vector<uint16_t> held_;  // channels whose method and header may still be borrowed
};

}  // namespace bellhop
