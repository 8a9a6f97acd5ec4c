// The publisher confirms of one client channel: which broker tag stands for which client tag. They differ
// once bellhop itself has refused a publish or sent one on the private channel. Only books: no I/O. The
// session's thread.
//
// A publish takes the next client tag when it is released, in channel order. It is settled once: by the
// broker's ack or nack of its broker tag, or by bellhop (settle_local). A `multiple` towards the client never
// spans an unsettled tag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/ops/session_meter.h"

namespace bellhop {

class ConfirmWindow {
 public:
  // `meter`, which may be null and outlives the window, counts the outcomes. What is not settled when the
  // window ends is unconfirmed.
  explicit ConfirmWindow(SessionMeter* meter = nullptr) : meter_(meter) {}
  ~ConfirmWindow();
  ConfirmWindow(const ConfirmWindow&) = delete;
  ConfirmWindow& operator=(const ConfirmWindow&) = delete;

  // One frame to write to the client.
  struct Answer {
    uint64_t client_tag = 0;
    bool multiple = false;
    bool nack = false;
  };

  // A publish that goes to the broker on this channel. Returns its client tag. `token` 0: nobody asks about
  // it; else on_broker() gives the token back when it is settled.
  // `mark`: how it is counted when it is settled.
  uint64_t push_relayed(uint32_t token = 0, PublishMark mark = {});
  // A publish that takes no broker tag of this channel (a hop, a local refusal, the end of a slip). Returns
  // its client tag.
  uint64_t push_local(uint32_t token = 0);

  // The broker's ack or nack. Appends the client's frames to `answers`, and the token of each settled publish
  // to `tokens`. False: the broker named a tag that is not outstanding; log it and go on.
  bool on_broker(uint64_t broker_tag, bool multiple, bool nack, std::vector<Answer>& answers,
                 std::vector<uint32_t>& tokens);
  // bellhop's own outcome for a client tag. Appends nothing when the tag was settled before.
  void settle_local(uint64_t client_tag, bool nack, std::vector<Answer>& answers);
  // A publish whose return is still being handed to the client: its ack waits for return_handed(), because a
  // return precedes its ack.
  void await_return(uint64_t client_tag);
  // It came back: that is its outcome, whatever confirm follows.
  void note_returned(uint64_t client_tag);
  void return_handed(uint64_t client_tag, std::vector<Answer>& answers);
  // A returning publish whose return cannot be handed to the client: answers with a nack at once, whatever
  // the broker says.
  void return_lost(uint64_t client_tag, std::vector<Answer>& answers);

  size_t unsettled() const;
  // Whether the broker's next frame may be relayed as it is: every tag in the window is equal on both sides,
  // none has a token, none is returning or local. Then call settle_relayed instead of on_broker.
  bool is_plain() const;
  bool settle_relayed(uint64_t broker_tag, bool multiple, bool nack);

 private:
  // One publish. Its client tag is its place: entries are in client-tag order without gaps.
  struct Entry {
    uint64_t broker_tag;  // of a local one: the latest broker tag before it, so that the window stays sorted
    uint32_t token;
    bool relayed : 1;
    bool open : 1;       // the client has no answer yet
    bool waits : 1;      // the broker has not answered yet
    bool returning : 1;  // its return is on its way to the client
    bool decided : 1;    // an outcome came meanwhile
    bool nack : 1;       // that outcome
    bool returned : 1;
    PublishMark mark;
  };

  Entry& at(uint64_t client_tag) { return ring_[client_tag & (ring_.size() - 1)]; }
  uint64_t push(uint32_t token, bool relayed, PublishMark mark);
  void close(Entry& entry, bool nack);
  void count(const Entry& entry, bool nack, uint64_t how_many);
  void grow();
  uint64_t first() const { return open_from_ < waits_from_ ? open_from_ : waits_from_; }
  uint64_t find(uint64_t broker_tag);
  void settle(uint64_t client_tag, bool nack, std::vector<Answer>& answers);
  void take_broker(uint64_t client_tag, bool nack, std::vector<Answer>& answers,
                   std::vector<uint32_t>& tokens);
  void advance();

  SessionMeter* const meter_;
  std::vector<Entry> ring_;  // a power of two, or empty; grows, never shrinks
  uint64_t next_client_ = 1;
  uint64_t next_broker_ = 1;
  uint64_t open_from_ = 1;   // no entry before it is open
  uint64_t waits_from_ = 1;  // no entry before it waits for the broker
  size_t unsettled_ = 0;     // open entries
  size_t special_ =
      0;  // tokens, returns and early local outcomes still in the window: each bars the plain path
};

}  // namespace bellhop
