// Lanes: each channel's order towards the client. What was delivered (or returned) behind a claim check waits
// in the check's lane until the payload is there; the front is handed over as soon as the writer is free.
// What the broker answered or delivered behind a return stays behind it; answers overtake deliveries.
//
//   plain ──────────────────────────────► its frames are written
//   spilled ─► returning (spill) ───────► plain
//   queued ─► fetching ─► ready (fetcher) ► body_stream
//   settled ────────────────────────────► dropped
//
// One thread (the session's).
#pragma once

#include <memory>
#include <string>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Lanes {
 public:
  explicit Lanes(SessionCore& core) : core_(core) {}

  // Puts a delivery at the end of a lane; a plain one is handed over by pump().
  void push(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery);
  // Whole frames that answer the client. True: they were put behind the returns that are not handed over yet.
  // The client sees an answer in its place, as it would at the broker: a return first, then a close-ok.
  bool waits_behind_returns(Channel& channel, Bytes frames);
  // Puts whole frames that are no content (a reply, a notice) at the end of a lane.
  void push_frames(Channel& channel, DeliveryKind kind, Bytes frames, const std::string& consumer_tag = {});
  // A delivery will not be handed over; those behind it are not kept waiting. Nothing when it is in no lane.
  void take_out(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // It is handed over as these frames, at its place, or last when it had left its lane.
  void make_plain(Channel& channel, const std::shared_ptr<Delivery>& delivery, Buffer frames);
  // Hands the client what is ready at the front of the channel's lanes.
  void pump(Channel& channel);
  // The client's socket or the writer is free again: goes on with the stream, or with whatever is ready.
  void resume();
  // The client has the delivery's content whole.
  void streamed(Channel& channel, const std::shared_ptr<Delivery>& delivery);

  // basic.recover: the broker has everything unacknowledged back.
  void recover(Channel& channel);
  // The broker's basic.cancel-ok or basic.cancel (`raw`, the whole frame). A client is handed nothing for a
  // consumer that is gone: what comes soon is awaited (true: `raw` is written behind it), what is held goes
  // back to its queue (false: `raw` is to be relayed).
  bool end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw);
  // Something of the lane may be held for long: no consumer's end waits for it.
  void release_notices(Channel& channel);
  // Drops what is held. A content that is half out goes on. Returns are the client's even when its channel is
  // closed: they are dropped with the channel.
  void abandon_deliveries(Channel& channel) { drop(channel, channel.deliveries); }
  void abandon_returns(Channel& channel) { drop(channel, channel.returns); }

 private:
  bool pump_lane(Channel& channel, Lane& lane);
  bool is_given_up(const Channel& channel, const Delivery& delivery) const;
  void drop(Channel& channel, Lane& lane);
  void hand_plain(Channel& channel, Lane& lane);
  void hand_late(Channel& channel);
  void pop(Channel& channel, Lane& lane);
  void give_back(Channel& channel, const std::string& consumer_tag);
  void uncount(Channel& channel, const Delivery& delivery);

  SessionCore& core_;
  size_t next_channel_ = 0;  // whose turn it is to begin a body
};

}  // namespace bellhop
