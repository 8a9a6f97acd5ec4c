// Outcomes: what the broker says became of the client's publishes: confirms, translated where the two sides'
// tags differ; returns, matched to their publish; the end of a transaction. A publish that has its outcome is
// forgotten (channel.h: Sent).
//
// One thread (the session's). Hot path.
#pragma once

#include <memory>
#include <vector>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Outcomes {
 public:
  explicit Outcomes(SessionCore& core) : core_(core) {}

  // basic.ack or basic.nack of the broker.
  void on_confirm(Channel& channel, const proto::Frame& frame, bool nack);
  // Takes room for what is remembered of a publish. When there is none the channel's oldest are forgotten, in
  // a transaction the newest: the return of such a one goes down as the broker sends it, its payload
  // restored. `sent` is null then, or no more than its transaction.
  void remember(Channel& channel, std::unique_ptr<Sent>& sent);
  // Notes in `sent` what tells its return from others: the content header as it was sent.
  static void remember_header(Sent& sent, Bytes header_payload);
  // The publish that the return arriving on the channel belongs to, taken out of what is remembered; null
  // when there is none.
  std::unique_ptr<Sent> match_return(Channel& channel);
  // The client has the return of its publish: the confirm that was held for it may follow.
  void release(Channel& channel, uint64_t client_tag);
  // The client cannot be handed the return: the publish is nacked, whatever the broker says of it.
  void deny(Channel& channel, uint64_t client_tag);
  // tx.commit-ok, tx.rollback-ok. True: the answer is the client's. bellhop's own commits are answered to
  // nobody.
  bool on_tx_ok(Channel& channel);

 private:
  SessionCore& core_;
  std::vector<ConfirmWindow::Answer> answers_;
  std::vector<uint32_t> tokens_;
};

}  // namespace bellhop
