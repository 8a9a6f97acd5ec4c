// The publisher confirms of one client channel: which broker tag stands for which client tag. They differ once a publish was refused
// by bellhop itself or travelled on the private channel. Pure bookkeeping: no I/O.
//
// A publish takes the next client tag when it is released, in channel order. It is settled once: by the broker's ack or nack of its
// broker tag, or by bellhop (settle_local). `multiple` towards the client never spans an unsettled tag.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace bellhop {

class ConfirmWindow {
 public:
  // One frame to write to the client.
  struct Answer {
    uint64_t client_tag = 0;
    bool multiple = false;
    bool nack = false;
  };

  // A publish that goes to the broker on this channel; returns its client tag. `token` 0: nothing is told about it; else settled()
  // names it.
  uint64_t push_relayed(uint32_t token = 0);
  // One that does not use a broker tag of this channel (a hop, a local refusal, the end of a slip); returns its client tag.
  uint64_t push_local(uint32_t token = 0);

  // The broker's ack or nack. Appends the client's frames to `answers`, and the token of each publish settled to `tokens`.
  // False: the broker named a tag that is not outstanding (ignore it, log it).
  bool on_broker(uint64_t broker_tag, bool multiple, bool nack, std::vector<Answer>& answers, std::vector<uint32_t>& tokens);
  // bellhop's own outcome for a client tag. Nothing is appended when it was settled before.
  void settle_local(uint64_t client_tag, bool nack, std::vector<Answer>& answers);
  // A publish whose return is still being handed to the client: its ack waits for release(), a return precedes its own ack.
  void hold(uint64_t client_tag);
  void release(uint64_t client_tag, std::vector<Answer>& answers);

  size_t unsettled() const;
  // The broker's next frame for `tag` may be relayed as it is: every tag in the window is equal on both sides, none has a token, none is
  // held or local. Call settle_relayed then instead of on_broker.
  bool is_plain() const;
  bool settle_relayed(uint64_t broker_tag, bool multiple);

 private:
  // For the implementer: a ring of small entries from the oldest unsettled one; is_plain() must be O(1) (counters).
};

}  // namespace bellhop
