// The delivery tags of one channel that are not settled yet, and who owns each: the client (it was handed the delivery) or bellhop
// (held, being parked, acknowledged by bellhop itself). Pure bookkeeping: no I/O. Tags come in rising order.
#pragma once

#include <cstdint>
#include <vector>

namespace bellhop {

class TagWindow {
 public:
  enum class Owner : uint8_t { settled, client, bellhop };
  // One frame to write to the broker.
  struct Piece {
    uint64_t tag = 0;
    bool multiple = false;
  };

  void add(uint64_t tag, Owner owner);       // the broker delivered it; precondition: greater than every earlier tag
  Owner owner(uint64_t tag) const;           // settled also for a tag never seen
  void give(uint64_t tag, Owner owner);      // changes the owner of an unsettled tag
  // What the client's ack/nack/reject of `tag` covers, as frames for the broker, and marks it settled. tag 0 with multiple: everything
  // the client was handed. The pieces never cover a tag of bellhop's. An empty answer with ok: nothing left to settle.
  // ok false: the tag is one of bellhop's that the client was not handed, or one it cannot name: 406.
  // A tag the window does not know at all gives ok and the piece as it came: the broker answers that itself.
  struct Covered {
    bool ok = true;
    std::vector<Piece> pieces;
  };
  Covered settle(uint64_t tag, bool multiple);
  void settle_own(uint64_t tag);             // bellhop settled it
  // True: no unsettled tag is bellhop's, so the client's frame may be relayed as it is (call settle_plain, which allocates nothing).
  bool is_plain() const;
  void settle_plain(uint64_t tag, bool multiple);
  size_t client_unsettled() const;           // O(1)
  void clear();                              // basic.recover, channel closed

 private:
  // For the implementer: a ring of one byte a tag from the oldest unsettled one, with counters.
};

}  // namespace bellhop
