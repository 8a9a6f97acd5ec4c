// PublishFrames: the frames of a publish as they come from the client. Decides, once the first three body
// bytes are known, what becomes of it: relayed as its frames come (stamped, escaped), stored while it
// arrives, or collected for a hop.
//
//   idle ─publish─► header ─content header─► start ─3 bytes─► relaying ─┐
//                      │ (body < 3 bytes) ───────────────────► job ──────┤ last byte
//                      └ refused ────────────────────────────► dropping ─┴─► idle
//
// A publish whose frames are all there goes a shorter way (on_whole, in publish_whole.cpp): what it says is
// decided once for all that say the same.
//
// One thread (the session's). Hot path.
#pragma once

#include <vector>

#include "daemon/door/amqp/broker_exchanges.h"
#include "daemon/door/amqp/broker_writer.h"
#include "daemon/door/amqp/publish_tracker.h"
#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/up/upload_jobs.h"
#include "daemon/pipeline/stamp.h"
#include "proto/claim_frame.h"
#include "proto/whole_publish.h"

namespace bellhop {

class PublishFrames {
 public:
  PublishFrames(const SessionState& state, SessionHost& host, Channels& channels, BrokerWriter& to_broker,
                PublishTracker& tracker, BrokerExchanges& exchanges, Stamper& stamper, UploadJobs& jobs)
      : state_(state),
        host_(host),
        channels_(channels),
        to_broker_(to_broker),
        tracker_(tracker),
        exchanges_(exchanges),
        stamper_(stamper),
        jobs_(jobs) {}

  void on_publish(Channel& channel, const proto::Frame& frame);
  // Both: false when the frame has to wait (limits): nothing was done with it, offer it again later. A frame
  // that breaks the protocol closes the connection.
  bool on_header(Channel& channel, const proto::Frame& frame);
  bool on_body(Channel& channel, const proto::Frame& frame);
  // The three frames at once, on an open channel. False: nothing was done with them, give them one by one.
  bool on_whole(Channel& channel, const proto::WholePublish& whole);
  // A frame that does not belong where the channel's publish is: ends the connection (505).
  void out_of_place(const Channel& channel);

  // Copies what is still borrowed from the client link's buffer. At the end of a turn.
  void detach_borrowed();
  // Drops the publish whose frames are arriving and all that wait, undoing what they stored. The channel
  // ends.
  void abandon(Channel& channel);

  // The client is gone: publishes whose last byte never came are dropped, complete ones stay.
  void drop_incomplete(Channel& channel);

 private:
  bool begin(Channel& channel, const proto::Publish& publish, const proto::ContentHeader& header,
             proto::Framing framing);
  bool knows_destination(const config::Plan& plan, const proto::ContentHeader& header);
  void begin_relay(Channel& channel, const config::Plan& plan, const proto::Publish& publish,
                   const proto::ContentHeader& header, size_t framing_bytes);
  TapLine line_of(const PublishAssembly& in, const config::Plan& plan, const Stamped& stamped,
                  Bytes written) const;
  bool begin_job(Channel& channel, const config::Plan& plan, bool offloaded);
  void refuse(Channel& channel, const config::Plan* plan, uint16_t code, std::string text,
              bool closes = false);
  void finish(Channel& channel);
  // Whether this publish's body goes to the plan's store.
  static bool is_offloaded(const config::Plan& plan, uint64_t body_bytes, proto::Framing framing,
                           const proto::Publish& publish);
  const config::Plan* plan_for(const proto::Publish& publish, Bytes header_fields) const;
  bool look_up(LastPublish& last, Bytes method) const;
  bool stamp_whole(const Channel& channel, const proto::WholePublish& whole, Bytes header);

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  BrokerWriter& to_broker_;
  PublishTracker& tracker_;
  BrokerExchanges& exchanges_;
  Stamper& stamper_;
  UploadJobs& jobs_;
  std::vector<uint16_t> borrowing_;  // channels whose publish waits for frames behind this turn's
};

}  // namespace bellhop
