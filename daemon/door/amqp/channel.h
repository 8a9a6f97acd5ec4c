// Channel: what a session knows of one client channel. It owns the channel's two orders, its books and the
// contents that are arriving. The parts of up/ and down/ work on it.
// One thread (the session's).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/routing_table.h"
#include "daemon/broker/confirm_window.h"
#include "daemon/broker/tag_window.h"
#include "daemon/door/amqp/channel_close.h"
#include "daemon/door/amqp/consumers.h"
#include "daemon/door/amqp/delivery_assembly.h"
#include "daemon/door/amqp/delivery_queue.h"
#include "daemon/door/amqp/pending.h"
#include "daemon/door/amqp/publish.h"
#include "daemon/door/amqp/publish_queue.h"
#include "proto/method.h"

namespace bellhop {

struct Channel {
  Channel(uint16_t channel_id, uint64_t channel_generation, SessionMemory& memory, SessionMeter& meter)
      : id(channel_id),
        generation(channel_generation),
        counted(meter.channels),
        publishes(memory),
        confirms(&meter),
        deliveries(memory),
        returns(memory) {}

  const uint16_t id;
  const uint64_t generation;  // tells apart two lives of one id
  ChannelClose end;
  const CountLease counted;

  bool confirm = false, tx = false;
  bool tx_dirty = false;  // tx: something since the last commit or rollback

  // --- towards the broker ---
  PublishAssembly in;
  LastPublish last_publish;
  PublishQueue publishes;
  Buffer after_publish;  // frames for the broker that wait for the end of the publish being relayed
  // Hops and parks that are under way on the private channel: the channel's end waits for them.
  const Pending::Count pending = std::make_shared<size_t>(0);
  ConfirmWindow confirms;
  std::deque<Sent> sent;
  uint32_t next_token = 1;
  // Of the publish whose frames are arriving the broker has the first ones.
  bool is_half_sent() const { return in.stage == PublishAssembly::Stage::relaying && publishes.empty(); }

  // --- towards the client ---
  DeliveryAssembly out;
  DeliveryQueue deliveries, returns;
  DeliveryQueue& queue_of(DeliveryKind kind) { return kind == DeliveryKind::returned ? returns : deliveries; }
  bool has_queued_deliveries() const { return !deliveries.empty() || !returns.empty(); }
  TagWindow tags;
  // tx: what bellhop settled itself since the last commit. A rollback takes it back, so that it is said
  // again.
  struct ProxyAck {
    uint64_t tag;
    bool reject, requeue;
  };
  std::vector<ProxyAck> proxy_acks;
  Consumers consumers;
  // Deliveries that came from a pipeline: by their tags, where they stand. The configuration may change.
  std::unordered_map<uint64_t, config::StepName> inputs;

  // --- what was asked of the broker, its answers awaited ---
  // tx: commits and rollbacks. own: bellhop's commit of proxy_acks.
  struct TxEnd {
    bool own;
    uint32_t number;
  };
  std::deque<TxEnd> tx_ends_awaited;
  uint32_t tx_number = 0;       // of the transaction that is open
  size_t recovers_awaited = 0;  // basic.recover sent: what is delivered before its answer is requeued
  std::deque<proto::Get> gets_awaited;
  std::deque<bool> declares_awaited;  // queue.declare: exclusive
  std::string last_queue;             // what an empty queue name stands for
};

}  // namespace bellhop
