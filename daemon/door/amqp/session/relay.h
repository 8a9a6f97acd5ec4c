// Relay: everything that works on the channels of one session, from the end of the handshake on. It makes the
// parts and joins them; what a part calls, it gets in its constructor. The members stand in the order of the
// layers: none knows one that stands below it, but for the two halves' interfaces (halves.h).
//
//            client frames                              broker frames
//    up/     client_frames ─► publish_frames ─► jobs    broker_frames ─► contents ─► fetcher    down/
//            publish_pump ─► methods, hops              delivery_pump ─► body_stream, undeliverable
//    beside  closing, hops, tracker, proxy_acks, private_channel, the two writers
//
// One thread (the session's).
#pragma once

#include <memory>

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/closing.h"
#include "daemon/door/amqp/down/broker_frames.h"
#include "daemon/door/amqp/hops.h"
#include "daemon/door/amqp/up/client_frames.h"

namespace bellhop {

class Relay final : private UpperHalf, private LowerHalf {
 public:
  // The handshake is done: `state` has what it agreed on. All outlive the relay. `executor` runs tasks on the
  // session's thread, and pump() is called after them.
  Relay(SessionState& state, SessionHost& host, SessionMemory& memory, Outbox& client_outbox,
        Outbox& broker_outbox, const std::shared_ptr<Executor>& executor);
  ~Relay();

  // A frame of the client for a channel. False: it has to wait for a transfer to end, and is to be given
  // again.
  bool on_client_frame(const proto::Frame& frame) { return client_frames_.on_frame(frame); }
  size_t on_whole_publishes(Bytes unread) { return client_frames_.on_whole_publishes(unread); }
  // A frame of the broker for a channel of the client's, or for bellhop's own. False: the broker broke the
  // protocol.
  bool on_broker_frame(const proto::Frame& frame) {
    Channel* channel = channels_.find(frame.channel);
    return channel == nullptr || broker_frames_.on_frame(*channel, frame);
  }
  bool on_private_frame(const proto::Frame& frame) { return private_channel_->on_frame(frame); }
  // Does what can be done now of what waited. Once a turn, after the frames and before the
  // flush.
  void pump();
  // Between two turns. What begins from here on follows this configuration.
  void use(std::shared_ptr<const Snapshot> snapshot);
  // Copies what is still borrowed from the links' buffers. At the end of a turn.
  void detach_client_frames() { publish_frames_.detach_borrowed(); }
  void detach_broker_frames() { delivery_frames_.detach_borrowed(); }
  // Retries what waited long enough. Milliseconds until something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

  // Where bellhop writes whole frames of its own for the client, of channel 0.
  Buffer& own_frames() { return to_client_.own(); }
  // The client has the first frames of a content, and not the last.
  bool is_half_out() const { return to_client_.is_busy(); }
  // Nothing waits for the client: a heartbeat is needed, and possible.
  bool is_quiet() const { return to_client_.is_quiet(); }
  // A restored body, see BodyStream.
  bool may_read_last() const { return body_stream_.may_read_last(); }
  bool is_yielding() const { return body_stream_.is_yielding(); }
  void broker_had_its_turn() { body_stream_.broker_had_its_turn(); }
  void cancel_stream() { body_stream_.cancel(); }
  // A publish that is to be stored can begin.
  bool has_place_for_upload() const { return jobs_.has_place(); }

  size_t unconfirmed() const { return channels_.unconfirmed(); }
  size_t unacknowledged() const { return channels_.unacknowledged(); }
  const Channels& channels() const { return channels_; }

  // Nothing that the client sent is on its way, nothing is being parked.
  bool is_settled() const;
  // Nor is anything unconfirmed, unacknowledged or held for the client.
  bool is_drained() const;
  bool is_parking() const { return undeliverable_.is_parking(); }
  // Something has to go to the client whole before its connection ends. (What is half out never will be whole
  // without the broker.)
  bool owes_content(bool has_broker) const;
  // The broker's frames may be handled: what is held for the client is not too much.
  bool has_room_for_deliveries() const {
    if (body_stream_.is_streaming() || undeliverable_.is_full()) return false;
    const uint64_t held_bytes = memory_.held_for_client_bytes();
    if (held_bytes < backlog_bytes_high && !memory_.holds_too_much()) return true;
    // What a get's park holds up is freed only by what the broker says next, and that stands behind the
    // deliveries that it sent before.
    return memory_.leases(MemoryUse::arriving_claim) != 0 ||
           (undeliverable_.is_parking_gets() && held_bytes < 4 * backlog_bytes_high);
  }

  // Nothing more comes from the client: complete publishes stay, others are dropped; what no_ack consumers
  // were not handed is parked.
  void end_of_client_frames();
  // The connection is closed by bellhop: what no_ack consumers were not handed is parked.
  void park_all_unhanded();
  // Drops all channels, and a content that is half out.
  void abandon();

 private:
  static constexpr uint64_t backlog_bytes_high = 16 << 20;  // more is held for the client: too much

  void abandon_publishes(Channel& channel) override { publish_frames_.abandon(channel); }
  void park_unhanded(Channel& channel) override { undeliverable_.park_all_unhanded(channel); }
  void abandon_deliveries(Channel& channel) override;
  void recover(Channel& channel) override { delivery_pump_.recover(channel); }
  void hand_back(Channel& channel, std::shared_ptr<Delivery> returned) override;

  SessionState& state_;
  SessionMemory& memory_;
  TransferSlots slots_;
  Channels channels_;
  ClientWriter to_client_;
  BrokerWriter to_broker_;
  const std::unique_ptr<PrivateChannel> private_channel_;  // null: the broker allows one channel only
  Stamper stamper_;
  ProxyAcks proxy_acks_;
  PublishTracker tracker_;
  Closing closing_;
  PublishRefusals refusals_;
  BrokerExchanges exchanges_;
  Hops hops_;

  Handover handover_;
  Fetcher fetcher_;
  Spill spill_;
  BodyStream body_stream_;
  Parker parker_;
  Undeliverable undeliverable_;
  DeliveryPump delivery_pump_;
  DeliveryFrames delivery_frames_;
  BrokerFrames broker_frames_;

  UploadJobs jobs_;
  PublishFrames publish_frames_;
  ClientMethods methods_;
  PublishPump publish_pump_;
  ClientFrames client_frames_;
};

}  // namespace bellhop
