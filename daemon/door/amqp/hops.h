// Hops: what a publish to bellhop.next does. The slip is advanced, the result goes to the next stop over the
// private channel, and once the broker has confirmed it, the input (header bellhop-ack) is acknowledged and
// the client gets its confirm: one transaction. One thread (the session's).
#pragma once

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Hops {
 public:
  explicit Hops(SessionCore& core) : core_(core) {}
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
  void settled(Channel& channel, Hop& hop, bool acked, bool returned, uint16_t code, const std::string& text);
  void hand_back(Channel& channel, Hop& hop, uint16_t code, const std::string& text);

  SessionCore& core_;
};

}  // namespace bellhop
