// Downward: the frames of the broker for the client's channels. Relays what needs nothing, strips inline
// frames, matches returns to their publishes, translates confirms, keeps the books on tags, consumers and
// closes, and gives claim checks to the fetcher.
//
//   idle ─deliver, get-ok, return─► header ─content header─► start ─3 bytes─► relaying ──┐
//                                                              │ a check ───► collecting ─┤ last byte
//                                                              └ draining ──► dropping ───┴─► idle
//
// One thread (the session's). Hot path.
#pragma once

#include <vector>

#include "daemon/door/amqp/session_core.h"
#include "proto/claim_frame.h"

namespace bellhop {

class Downward {
 public:
  explicit Downward(SessionCore& core) : core_(core) {}

  // A frame for a client channel (not 0, not the private channel). False: the broker broke the protocol.
  bool on_frame(Channel& channel, const proto::Frame& frame);
  // Copies what is still borrowed from the broker link's buffer. At the end of a turn.
  void detach_held();

  // The client has a content whole: its tag is the client's now, or acknowledged; a return's confirm
  // (client_tag) may follow.
  void handed(Channel& channel, DeliveryKind kind, uint64_t tag, bool no_ack, bool settle_when_handed,
              uint64_t client_tag);

 private:
  bool on_method(Channel& channel, const proto::Frame& frame);
  bool on_header(Channel& channel, const proto::Frame& frame);
  bool on_body(Channel& channel, const proto::Frame& frame);
  bool begin_content(Channel& channel, DeliveryKind kind, const proto::Frame& frame);
  void remember_pipeline(Channel& channel, std::string_view exchange);
  void begin_plain(Channel& channel, size_t strip_bytes);
  void relay_body(Channel& channel, const proto::Frame& frame);
  void finish_plain(Channel& channel);
  void finish_check(Channel& channel);
  void on_confirm(Channel& channel, const proto::Frame& frame, bool nack);
  void on_close(Channel& channel, const proto::Frame& frame);
  void on_close_ok(Channel& channel, const proto::Frame& frame);
  bool on_tx_ok(Channel& channel);
  bool waits_behind_returns(Channel& channel, const proto::Frame& frame);
  std::shared_ptr<Delivery> new_delivery(Channel& channel);
  std::unique_ptr<Sent> match_return(Channel& channel);
  std::string queue_of(Channel& channel, std::string_view consumer_tag) const;
  void relay(const proto::Frame& frame);
  Lane& lane_of(Channel& channel) const {
    return channel.out.kind == DeliveryKind::returned ? channel.returns : channel.deliveries;
  }

  SessionCore& core_;
  std::vector<uint16_t> held_;
  std::vector<ConfirmWindow::Answer> answers_;
  std::vector<uint32_t> tokens_;
};

}  // namespace bellhop
