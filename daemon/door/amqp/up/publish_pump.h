// PublishPump: releases what stands at the front of each channel's publish queue, in the client's order: a
// job whose store is done with it, a publish or a method behind it. Once a turn.
//
// One thread (the session's).
#pragma once

#include "daemon/door/amqp/hops.h"
#include "daemon/door/amqp/up/client_methods.h"
#include "daemon/pipeline/stamp.h"

namespace bellhop {

class PublishPump {
 public:
  PublishPump(const SessionState& state, Channels& channels, SessionMemory& memory, BrokerWriter& to_broker,
              PublishTracker& tracker, BrokerExchanges& exchanges, PublishRefusals& refusals, Hops& hops,
              Stamper& stamper, ClientMethods& methods)
      : state_(state),
        channels_(channels),
        memory_(memory),
        to_broker_(to_broker),
        tracker_(tracker),
        exchanges_(exchanges),
        refusals_(refusals),
        hops_(hops),
        stamper_(stamper),
        methods_(methods) {}

  // A method of the client that is no publish: applied and relayed at once, or after what it stands behind.
  void method(Channel& channel, const proto::Frame& frame);
  // Releases what is ready, on all channels. Once a turn.
  void pump();
  // Releases what is ready on one whose queue has changed while the client's frames are read: what follows
  // finds the channel as it is then.
  void pump(Channel& channel);
  // No channel has anything that waits.
  bool is_idle() const { return memory_.leases(MemoryUse::queued_publish) == 0; }

 private:
  void release_job(Channel& channel, PublishJob& job);

  const SessionState& state_;
  Channels& channels_;
  SessionMemory& memory_;
  BrokerWriter& to_broker_;
  PublishTracker& tracker_;
  BrokerExchanges& exchanges_;
  PublishRefusals& refusals_;
  Hops& hops_;
  Stamper& stamper_;
  ClientMethods& methods_;
};

}  // namespace bellhop
