#include "daemon/door/amqp/own_settles.h"

#include <utility>

namespace bellhop {

void OwnSettles::settle(Channel& channel, uint64_t tag, bool reject, bool requeue) {
  // bellhop has closed the channel at the broker, which requeues the delivery.
  if (channel.state == Channel::State::local_closing) return;
  Buffer& out = core_.to_broker(channel);
  if (reject) {
    proto::put_reject(out, channel.id, tag, requeue);
  } else {
    proto::put_ack(out, channel.id, tag, false);
  }
  channel.tags.settle_own(tag);
  if (!channel.tx) return;
  channel.own_settles.push_back({tag, reject, requeue});
  commit(channel);
}

void OwnSettles::say_again(Channel& channel) {
  auto again = std::exchange(channel.own_settles, {});
  for (const Channel::OwnSettle& own : again) settle(channel, own.tag, own.reject, own.requeue);
}

// bellhop commits a transaction itself if it holds nothing of the client's.
void OwnSettles::commit(Channel& channel) {
  if (channel.own_settles.empty() || channel.tx_dirty || SessionCore::is_half_sent(channel)) return;
  proto::put_empty_method(core_.broker->outbox().tail(), proto::method::tx_commit, channel.id);
  channel.own_settles.clear();
  channel.tx_ends_awaited.push_back({true, 0});
}

}  // namespace bellhop
