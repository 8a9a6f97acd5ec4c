// Handover: what follows when the client has a content whole. One thread (the session's).
#pragma once

#include "daemon/door/amqp/proxy_acks.h"
#include "daemon/door/amqp/publish_tracker.h"

namespace bellhop {

class Handover {
 public:
  Handover(PublishTracker& tracker, ProxyAcks& proxy_acks, SessionMeter& meter)
      : tracker_(tracker), proxy_acks_(proxy_acks), meter_(meter) {}

  // Its tag is the client's now, or acknowledged; a return's confirm (client_tag, 0 for none) may follow.
  void handed(Channel& channel, DeliveryPath path, DeliveryKind kind, uint64_t tag, bool no_ack,
              bool settle_when_handed, uint64_t client_tag) {
    if (client_tag != 0) tracker_.return_handed(channel, client_tag);
    if (kind == DeliveryKind::returned || kind == DeliveryKind::notice) return;
    meter_.delivered(path);
    if (no_ack) return;
    if (settle_when_handed) {
      proxy_acks_.ack(channel, tag);
    } else {
      channel.tags.give(tag, TagWindow::Owner::client);
    }
  }

 private:
  PublishTracker& tracker_;
  ProxyAcks& proxy_acks_;
  SessionMeter& meter_;
};

}  // namespace bellhop
