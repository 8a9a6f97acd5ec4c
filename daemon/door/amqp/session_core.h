// SessionCore: what the parts of one session share: its links, its channels, its limits, and the ways to end
// a channel or the connection. The parts (publisher, releaser, downward, lanes, hops and so on) each have a
// reference to it and reach each other through it. One thread: the session's own.
#pragma once

#include <uv.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/routing_table.h"
#include "daemon/broker/broker_nodes.h"
#include "daemon/claims/stores.h"
#include "daemon/door/amqp/channel.h"
#include "daemon/door/amqp/client_writer.h"
#include "daemon/door/amqp/spill.h"
#include "daemon/ops/budget.h"
#include "daemon/ops/mailbox.h"
#include "daemon/ops/quota.h"
#include "daemon/wire/link.h"
#include "daemon/wire/tls_context.h"
#include "proto/uuid.h"

namespace bellhop {

class Publisher;
class Releaser;
class Upward;
class Downward;
class Deliverer;
class Outcomes;
class Lanes;
class Fetcher;
class BodyStream;
class Undeliverable;
class OwnSettles;
class BrokerExchanges;
class Hops;
class Parks;
class PrivateChannel;

// What all sessions of the process share. Immutable but for the counters. Outlives every session.
struct Shared {
  std::shared_ptr<const config::Config> config;
  std::unique_ptr<config::RoutingTable> routing;
  std::unique_ptr<Stores> stores;
  std::unique_ptr<const TlsContext> tls;  // null: no URL is an amqps:// one
  std::unique_ptr<Budget> budget;
  SpillSpace spill;
  BrokerNodes nodes;
  std::atomic<uint64_t> held_for_clients{0};  // bytes in all sessions' lanes
  Quota parks{uint64_t{64} << 20};       // what all sessions keep in memory of messages that are being parked
  Quota remembered{uint64_t{32} << 20};  // what all sessions remember of publishes that may come back
  std::unique_ptr<Quota>
      hop_bodies;  // limits.inflight_bytes: of hops that are collected, until they are whole
  std::string host;
};

class SessionCore {
 public:
  SessionCore(Shared& all, uv_loop_t* session_loop, uint64_t id);
  ~SessionCore();
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  Shared& shared;
  const config::Config& config;
  uv_loop_t* const loop;
  const uint64_t session_id;
  std::shared_ptr<Mailbox> mailbox;
  proto::UuidGenerator uuids;

  // Set by the handshake.
  uint32_t frame_bytes_max = proto::frame_min_bytes;
  uint16_t client_channel_max = 0;
  uint16_t private_channel_id = 0;  // 0: there is none
  std::string broker_user;     // empty: not known (another mechanism than PLAIN or AMQPLAIN was passed on)
  bool has_own_login = false;  // bellhop is that user; else the client is, and the broker decides what it may

  Quota remembered{uint64_t{8} << 20};  // of all.remembered. Outlives the channels

  std::set<std::string> exclusive_queues;  // that this connection declared, under names of the client's
  // A queue that the broker named is parked like an exclusive one by its name: a client may make any number
  // of those.
  void note_exclusive(const std::string& queue) {
    if (!queue.starts_with("amq.")) exclusive_queues.insert(queue);
  }

  std::unique_ptr<Link> client, broker;
  std::unique_ptr<ClientWriter> writer;

  std::unique_ptr<Publisher> publisher;
  std::unique_ptr<Releaser> releaser;
  std::unique_ptr<Upward> upward;
  std::unique_ptr<Downward> downward;
  std::unique_ptr<Deliverer> deliverer;
  std::unique_ptr<Outcomes> outcomes;
  std::unique_ptr<Lanes> lanes;
  std::unique_ptr<Spill> spill;
  std::unique_ptr<Fetcher> fetcher;
  std::unique_ptr<BodyStream> body_stream;
  std::unique_ptr<Undeliverable> undeliverable;
  std::unique_ptr<OwnSettles> own_settles;
  std::unique_ptr<BrokerExchanges> broker_exchanges;
  std::unique_ptr<Hops> hops;
  std::unique_ptr<Parks> parks;
  std::unique_ptr<PrivateChannel> private_channel;

  bool draining = false;     // no new delivery is begun
  bool client_gone = false;  // the client's socket ended: nothing more goes there
  bool ending = false;       // a connection.close is on its way down or up: client frames are dropped
  bool closing = false;      // the connection's close waits for the returns that are being restored

  uint64_t now_ms() const { return uv_now(loop); }

  // --- channels ---
  Channel* channel(uint16_t id) const { return id < channels_.size() ? channels_[id].get() : nullptr; }
  // The channel of that life, null once it ended.
  Channel* channel(uint16_t id, uint64_t generation) const;
  Channel* channel_of(const Delivery& delivery) const {
    return channel(delivery.channel, delivery.generation);
  }
  Channel& open_channel(uint16_t id);
  // Aborts what it has under way, and drops what it holds but for its returns: they are still the client's.
  void abandon(Channel& channel);
  void forget_channel(uint16_t id);  // drops its returns too
  const std::vector<std::unique_ptr<Channel>>& channels() const { return channels_; }
  size_t open_channels() const { return open_channels_; }
  // Publishes without their confirm, and deliveries that the client has and did not settle, of all channels.
  size_t unconfirmed() const;
  size_t unacknowledged() const;

  // --- towards the broker ---
  // Of the publish whose frames are arriving the broker has the first ones.
  static bool is_half_sent(const Channel& channel) {
    return channel.in.stage == PublishAssembly::Stage::relaying && channel.queue.empty();
  }
  // Where bellhop writes whole frames of its own for a channel: never between the frames of a publish of that
  // channel.
  Buffer& to_broker(Channel& channel) {
    return is_half_sent(channel) ? channel.after_publish : broker->outbox().tail();
  }
  void log_problem(const std::string& what) const;

  // --- ends ---
  // Closes a channel by bellhop's own decision, on both legs (ARCHITECTURE.md, "A channel that bellhop
  // closes"): the broker is told at once, the client when the broker's answers to what the channel said
  // before have passed.
  void close_channel(Channel& channel, uint16_t code, const std::string& text, uint32_t method = 0);
  // Tells the client those of such closes that it may know by now.
  void tell_closes();
  bool has_untold_closes() const { return !untold_closes_.empty(); }
  // A close-ok of a client_closing or broker_closing channel was relayed, or put behind its returns. When
  // none is owed any more and all are handed over, the id is free.
  void end_relayed_close(Channel& channel);
  // Does so for those that had returns. Once a turn, before the flush.
  void end_relayed_closes();
  // Something that the client has to see before its connection's end is being restored.
  bool has_returns() const;
  // Closes the connection by bellhop's own decision. Frames already relayed stay relayed.
  void close_connection(uint16_t code, const std::string& text, uint32_t method = 0);

  // --- memory ---
  // Bodies and frames on their way to the broker or a store; `channel` is null for what is not its queue's.
  void take(Channel* channel, uint64_t bytes);
  void give_back(Channel* channel, uint64_t bytes);
  // What a channel's lanes hold for the client.
  void take_for_client(Channel& channel, uint64_t bytes);
  void give_back_for_client(Channel& channel, uint64_t bytes);
  // This session holds more than its floor, of what others than the client will free, while all together hold
  // more than the limit. What is held for the client does not count here: its acks may be what frees it.
  bool over_budget() const {
    return held_bytes_ - held_for_client_bytes_ - collected_bytes > floor_bytes && shared.budget->is_over();
  }
  uint64_t collected_bytes = 0;  // of held_bytes: bodies that only more of the client's frames can complete
  uint64_t held_for_client_bytes() const { return held_for_client_bytes_; }
  // All sessions together hold so much for their clients that each spills what it can.
  bool spills_early() const {
    return shared.held_for_clients.load(std::memory_order_relaxed) >= spill_all_bytes;
  }
  // They hold so much that none takes more than a little. Looked at again with the session's next tick.
  bool holds_too_much() const {
    return held_for_client_bytes_ >= floor_bytes &&
           shared.held_for_clients.load(std::memory_order_relaxed) >= hold_all_bytes;
  }

  // Set by the session.
  std::function<void(uint16_t code, const std::string& text, uint32_t method)> on_close_connection;
  std::function<void(uint64_t after_ms)> on_tick_wanted;  // the session's tick is to come no later than this

  size_t collecting = 0;    // checks whose body is arriving: only the broker's frames can end that
  size_t lane_entries = 0;  // deliveries in all channels' lanes
  size_t transfers = 0;     // uploads and fetches that hold one of limits.transfers_per_session

  static constexpr uint64_t floor_bytes = uint64_t{1} << 20;
  static constexpr uint64_t spill_all_bytes = uint64_t{24} << 20, hold_all_bytes = uint64_t{48} << 20;

 private:
  std::vector<std::unique_ptr<Channel>> channels_;
  size_t open_channels_ = 0;
  std::vector<uint16_t> untold_closes_;   // channels that close, and whose client does not know yet
  std::vector<uint16_t> unended_closes_;  // channels whose close-ok stands behind their returns
  uint64_t generations_ = 0;
  uint64_t held_bytes_ = 0;             // all of it
  uint64_t held_for_client_bytes_ = 0;  // of held_bytes_
};

}  // namespace bellhop
