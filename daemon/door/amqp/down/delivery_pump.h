// DeliveryPump: hands the client what is ready at the front of each channel's queues, as soon as the writer
// is free. What the broker answered or delivered behind a return stays behind it; answers overtake
// deliveries. Failed deliveries go from the fetcher to what becomes of them.
//
//   fetcher, spill, body_stream ─► change a delivery's state
//   delivery_pump ───────────────► looks at the fronts, once a turn
//
// One thread (the session's).
#pragma once

#include <memory>
#include <string>

#include "daemon/door/amqp/down/body_stream.h"
#include "daemon/door/amqp/down/fetcher.h"
#include "daemon/door/amqp/down/handover.h"
#include "daemon/door/amqp/down/spill.h"
#include "daemon/door/amqp/down/undeliverable.h"

namespace bellhop {

class DeliveryPump {
 public:
  DeliveryPump(const SessionState& state, Channels& channels, SessionMemory& memory, ClientWriter& to_client,
               ProxyAcks& proxy_acks, Fetcher& fetcher, Spill& spill, BodyStream& body_stream,
               Undeliverable& undeliverable, Handover& handover)
      : state_(state),
        channels_(channels),
        memory_(memory),
        to_client_(to_client),
        proxy_acks_(proxy_acks),
        fetcher_(fetcher),
        spill_(spill),
        body_stream_(body_stream),
        undeliverable_(undeliverable),
        handover_(handover) {}

  // Does for all channels what can be done now.
  void pump();
  // Does so for one whose queues have changed while the broker's frames are read: what follows may be relayed
  // when nothing is queued any more.
  void pump(Channel& channel);

  // basic.recover: the broker has everything unacknowledged back.
  void recover(Channel& channel);
  // The broker's basic.cancel-ok or basic.cancel (`raw`, the whole frame; empty when the client wants no
  // answer). A client is handed nothing for a consumer that is gone: what comes soon is awaited (true: `raw`
  // is written behind it), what is held goes back to its queue. False: `raw` is to be relayed.
  bool end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw);

 private:
  void pump_channel(Channel& channel);
  void pump_queues(Channel& channel);
  void pump_stream();
  void take_failed();
  void take_handed(Channel& channel, DeliveryQueue& queue);
  bool pump_queue(Channel& channel, DeliveryQueue& queue);
  bool is_given_up(const Channel& channel, const Delivery& delivery) const;
  void hand_plain(Channel& channel, DeliveryQueue& queue);
  void hand_late(Channel& channel);
  void end_held_consumers(Channel& channel);
  void give_back(Channel& channel, const std::shared_ptr<Delivery>& notice);

  const SessionState& state_;
  Channels& channels_;
  SessionMemory& memory_;
  ClientWriter& to_client_;
  ProxyAcks& proxy_acks_;
  Fetcher& fetcher_;
  Spill& spill_;
  BodyStream& body_stream_;
  Undeliverable& undeliverable_;
  Handover& handover_;
  size_t next_channel_ = 0;  // whose turn it is to begin a body
};

}  // namespace bellhop
