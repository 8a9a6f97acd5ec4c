// ProxyAcks: the acknowledgements and rejects that bellhop says of its own accord, of tags that the client
// was never given (or gave up on): what was parked, what a hop consumed, what a gone consumer was not handed.
//
// On a tx channel nobody may ever commit them: bellhop does, unless the client's transaction is open; a
// rollback takes them back, so that they are said again.
//
// One thread (the session's).
#pragma once

#include "daemon/door/amqp/broker_writer.h"

namespace bellhop {

class ProxyAcks {
 public:
  explicit ProxyAcks(BrokerWriter& to_broker) : to_broker_(to_broker) {}

  // Each settles a tag that is bellhop's own.
  void ack(Channel& channel, uint64_t tag) { settle(channel, {tag, false, false}); }
  void reject(Channel& channel, uint64_t tag, bool requeue) { settle(channel, {tag, true, requeue}); }
  // tx: what a rollback of the client took back.
  void say_again(Channel& channel);

 private:
  void settle(Channel& channel, const Channel::ProxyAck& said);
  void commit(Channel& channel);

  BrokerWriter& to_broker_;
};

}  // namespace bellhop
