// PublishTracker: what becomes of the client's publishes. It remembers what a return needs, translates the
// broker's confirms where the two sides' tags differ, matches returns to their publish, and ends
// transactions. A publish that has its outcome is forgotten.
//
// One thread (the session's). Hot path.
#pragma once

#include <memory>
#include <vector>

#include "daemon/door/amqp/client_writer.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/pipeline/stamp.h"

namespace bellhop {

class PublishTracker {
 public:
  PublishTracker(SessionState& state, ClientWriter& to_client) : state_(state), to_client_(to_client) {}

  // --- what goes up ---
  // What to remember of a publish that is sent. `own_header`: the client's content header payload;
  // `sent_header`: bellhop's.
  static std::unique_ptr<Sent> remember(const proto::Publish& publish, const Stamped& stamped,
                                        Bytes own_header, Bytes sent_header);
  // A publish was written to the broker on the client's channel. Gives `sent` (null: nothing to remember) its
  // tags. Where there is no room for it the channel's oldest are forgotten, in a transaction it is the
  // newest: the return of such a one goes down as the broker sends it, its payload restored.
  void published(Channel& channel, PublishMark mark, std::unique_ptr<Sent> sent);
  // A publish that the broker will never see: the tag that the client knows it by, which is unsettled.
  uint64_t take_local_tag(Channel& channel) { return channel.confirms.push_local(); }
  // bellhop's own outcome of one.
  void settle_local(Channel& channel, uint64_t client_tag, bool nack);

  // --- what comes down ---
  // basic.ack or basic.nack of the broker.
  void on_confirm(Channel& channel, const proto::Frame& frame, bool nack);
  // The publish that the return arriving on the channel belongs to, taken out of what is remembered; null
  // when there is none.
  std::unique_ptr<Sent> match_return(Channel& channel);
  // The client has the return of its publish: the confirm that waited for it may follow.
  void return_handed(Channel& channel, uint64_t client_tag);
  // The client cannot be handed the return: the publish is nacked, whatever the broker says of it.
  void return_lost(Channel& channel, uint64_t client_tag);
  // tx.commit-ok, tx.rollback-ok. True: the answer is the client's. bellhop's own commits are answered to
  // nobody.
  bool on_tx_ok(Channel& channel);

 private:
  void make_room(Channel& channel, std::unique_ptr<Sent>& sent);
  void write_answers(const Channel& channel);

  SessionState& state_;
  ClientWriter& to_client_;
  std::vector<ConfirmWindow::Answer> answers_;
  std::vector<uint32_t> tokens_;
};

}  // namespace bellhop
