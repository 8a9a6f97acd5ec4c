// Publisher: the frames of a publish as they come from the client. Decides, once the first three body bytes
// are known, what becomes of it: relayed as its frames come (stamped, escaped), stored while it arrives, or
// collected for a hop.
//
//   idle ─publish─► header ─content header─► start ─3 bytes─► relaying ─┐
//                      │ (body < 3 bytes) ───────────────────► job ──────┤ last byte
//                      └ refused ────────────────────────────► dropping ─┴─► idle
//
// One thread (the session's). Hot path.
#pragma once

#include <vector>

#include "daemon/door/amqp/session_core.h"
#include "daemon/pipeline/stamp.h"
#include "proto/claim_frame.h"

namespace bellhop {

class Publisher {
 public:
  explicit Publisher(SessionCore& core);

  // Each: false when the frame has to wait (limits): nothing was done with it, offer it again later. A frame
  // that breaks the protocol closes the connection.
  bool on_publish(Channel& channel, const proto::Frame& frame);
  bool on_header(Channel& channel, const proto::Frame& frame);
  bool on_body(Channel& channel, const proto::Frame& frame);
  // A frame that does not belong where the channel's publish is: ends the connection (505).
  void out_of_place(const Channel& channel);

  // Copies what is still borrowed from the client link's buffer. At the end of a turn.
  void detach_held();
  // Drops the publish whose frames are arriving and all that wait, undoing what they stored. The channel
  // ends.
  void abandon(Channel& channel);

  // The client is gone: publishes whose last byte never came are dropped, complete ones stay.
  void drop_incomplete(Channel& channel);
  // The job is over with: gives back its place and its memory. Again is harmless.
  void end_job(PublishJob& job);
  Stamper& stamper() { return stamper_; }

 private:
  bool begin(Channel& channel, const proto::Publish& publish, const proto::ContentHeader& header,
             proto::Framing framing);
  bool knows_destination(const config::Plan& plan, const proto::ContentHeader& header);
  void begin_relay(Channel& channel, const proto::Publish& publish, const proto::ContentHeader& header,
                   size_t framing_bytes);
  bool begin_job(Channel& channel, ClaimStore* store);
  void refuse(Channel& channel, uint16_t code, std::string text, bool closes = false);
  void add_to_job(Channel& channel, Bytes payload);
  void finish(Channel& channel);
  void uploaded(Channel* channel, const std::shared_ptr<PublishJob>& job, Result<Claim> result);
  // The store for this publish's body, null when it is not offloaded.
  ClaimStore* store_for(const config::Plan& plan, uint64_t body_bytes, proto::Framing framing,
                        const proto::Publish& publish) const;
  const config::Plan* plan_for(const proto::Publish& publish, const proto::ContentHeader& header) const;

  SessionCore& core_;
  Stamper stamper_;
  std::vector<uint16_t> held_;  // channels whose publish waits for frames behind this turn's
  size_t finishing_ = 0;        // complete uploads whose outcome is awaited
};

}  // namespace bellhop
