#include "daemon/door/amqp/proxy_acks.h"

#include <utility>

#include "proto/method.h"

namespace bellhop {

void ProxyAcks::settle(Channel& channel, const Channel::ProxyAck& said) {
  // The channel's close has gone up or come down: the broker requeues the delivery, and closes the connection
  // for any frame that comes behind.
  if (!channel.end.is_open()) return;
  Buffer& out = to_broker_.own(channel);
  if (said.reject) {
    proto::put_reject(out, channel.id, said.tag, said.requeue);
  } else {
    proto::put_ack(out, channel.id, said.tag, false);
  }
  channel.tags.settle_own(said.tag);
  if (!channel.tx) return;
  channel.proxy_acks.push_back(said);
  commit(channel);
}

void ProxyAcks::say_again(Channel& channel) {
  for (const Channel::ProxyAck& said : std::exchange(channel.proxy_acks, {})) settle(channel, said);
}

// bellhop commits a transaction itself if it holds nothing of the client's.
void ProxyAcks::commit(Channel& channel) {
  if (channel.proxy_acks.empty() || channel.tx_dirty || channel.is_half_sent()) return;
  proto::put_empty_method(to_broker_.tail(), proto::method::tx_commit, channel.id);
  channel.proxy_acks.clear();
  channel.tx_ends_awaited.push_back({true, 0});
}

}  // namespace bellhop
