// ClientMethods: the client's methods that are no publish. Keeps the books on what was asked of the broker,
// changes what has to be changed, and relays.
//
// One thread (the session's).
#pragma once

#include "daemon/door/amqp/closing.h"
#include "daemon/door/amqp/proxy_acks.h"

namespace bellhop {

class ClientMethods {
 public:
  ClientMethods(SessionState& state, SessionHost& host, BrokerWriter& to_broker, ProxyAcks& proxy_acks,
                Closing& closing, LowerHalf& lower)
      : state_(state),
        host_(host),
        to_broker_(to_broker),
        proxy_acks_(proxy_acks),
        closing_(closing),
        lower_(lower) {}

  // Its turn in the channel's order has come. `is_borrowed`: the frame stands in the client link's buffer
  // until the end of the turn, so that it is relayed where it stands.
  void apply(Channel& channel, const proto::Frame& frame, bool is_borrowed);

 private:
  void end_transaction(Channel& channel, bool committed);
  bool settle(Channel& channel, const proto::Frame& frame, uint32_t number);
  bool answer_virtual_exchange(Channel& channel, const proto::Frame& frame, uint32_t number);
  void cancel(Channel& channel, const proto::Frame& frame);
  void consume(Channel& channel, const proto::Frame& frame);
  bool get(Channel& channel, const proto::Frame& frame);
  void declare(Channel& channel, const proto::Frame& frame);

  SessionState& state_;
  SessionHost& host_;
  BrokerWriter& to_broker_;
  ProxyAcks& proxy_acks_;
  Closing& closing_;
  LowerHalf& lower_;
};

}  // namespace bellhop
