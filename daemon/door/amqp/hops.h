// Hops: what a publish to bellhop.next does. The slip is advanced, the result goes to the next stop over the
// private channel, and once the broker has confirmed it, the input (header bellhop-ack) is acknowledged and
// the client gets its confirm: one transaction. One thread (the session's).
#pragma once

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/broker_exchanges.h"
#include "daemon/door/amqp/proxy_acks.h"
#include "daemon/door/amqp/publish_refusals.h"

namespace bellhop {

class Hops {
 public:
  // `private_channel` is null where the broker allows one channel only.
  Hops(SessionState& state, SessionMemory& memory, Channels& channels, PrivateChannel* private_channel,
       BrokerExchanges& exchanges, PublishTracker& tracker, ProxyAcks& proxy_acks, Closing& closing,
       PublishRefusals& refusals, LowerHalf& lower)
      : state_(state),
        memory_(memory),
        channels_(channels),
        private_channel_(private_channel),
        exchanges_(exchanges),
        tracker_(tracker),
        proxy_acks_(proxy_acks),
        closing_(closing),
        refusals_(refusals),
        lower_(lower) {}
  // A hop's turn in its channel's order; its payload is in memory or in a store. Takes what it needs out of
  // the job.
  void release(Channel& channel, PublishJob& job);

 private:
  struct Hop;
  bool put_hop(Hop& hop, const proto::Publish& publish, const proto::ContentHeader& header, Bytes slip_fields,
               const config::Plan& plan, Buffer& frames);
  void choose_way(Hop& hop, PrivateChannel::Item& item);
  void on_outcome(const std::shared_ptr<Hop>& hop, const PrivateChannel::Outcome& outcome);
  void end(Hop& hop, const PrivateChannel::Outcome& outcome);
  LogFields about(const Channel& channel, const Hop& hop) const;
  void settled(Channel& channel, Hop& hop, bool acked, bool returned, uint16_t code, const std::string& text);
  void hand_back(Channel& channel, Hop& hop, uint16_t code, const std::string& text);

  SessionState& state_;
  SessionMemory& memory_;
  Channels& channels_;
  PrivateChannel* const private_channel_;
  BrokerExchanges& exchanges_;
  PublishTracker& tracker_;
  ProxyAcks& proxy_acks_;
  Closing& closing_;
  PublishRefusals& refusals_;
  LowerHalf& lower_;
};

}  // namespace bellhop
