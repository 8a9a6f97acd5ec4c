// The delivery tags of one channel that are not settled yet, and who owns each: the client (it was handed the
// delivery) or bellhop (held, being parked, acknowledged by bellhop itself). Pure bookkeeping: no I/O. Tags
// come in rising order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bellhop {

class TagWindow {
 public:
  // in_tx: settled by the client inside an open transaction; its end decides.
  enum class Owner : uint8_t { settled, client, bellhop, in_tx };
  // One frame to write to the broker.
  struct Piece {
    uint64_t tag = 0;
    bool multiple = false;
  };

  void add(uint64_t tag,
           Owner owner);            // the broker delivered it; precondition: greater than every earlier tag
                                    // (one that is not is ignored). Every delivery while one is bellhop's
  Owner owner(uint64_t tag) const;  // settled also for a tag never seen
  void give(uint64_t tag, Owner owner);  // changes the owner of an unsettled tag
  // What the client's ack/nack/reject of `tag` covers, as frames for the broker, and marks it settled. tag 0
  // with multiple: everything the client was handed. The pieces never cover a tag of bellhop's. An empty
  // answer with ok: nothing left to settle. ok false: the tag is one of bellhop's that the client was not
  // handed, or one it cannot name: 406. A tag the window does not know at all gives ok and the piece as it
  // came: the broker answers that itself.
  struct Covered {
    bool ok = true;
    std::vector<Piece> pieces;
  };
  // In a transaction the tags only become in_tx (`to`), until end_tx.
  Covered settle(uint64_t tag, bool multiple, Owner to = Owner::settled);
  void settle_own(uint64_t tag);  // bellhop settled it
  // True: no unsettled tag is bellhop's, so the client's frame may be relayed as it is (call settle_plain,
  // which allocates nothing).
  bool is_plain() const;
  void settle_plain(uint64_t tag, bool multiple, Owner to = Owner::settled);
  void end_tx(bool committed);      // a rollback makes the tags the client's again
  size_t client_unsettled() const;  // O(1)
  void clear();                     // basic.recover, channel closed

 private:
  // A ring of the tags seen, in rising order, from the oldest unsettled one; positions count up for ever.
  // Settled ones in the middle are squeezed out when the ring is full, so that one old unsettled tag does not
  // let it grow.
  struct Entry {
    uint64_t tag : 62;
    uint64_t owner : 2;
  };
  static constexpr uint64_t nowhere = ~uint64_t{0};

  Entry& at(uint64_t position) { return ring_[position & (ring_.size() - 1)]; }
  const Entry& at(uint64_t position) const { return ring_[position & (ring_.size() - 1)]; }
  static Owner owner_of(const Entry& entry) { return static_cast<Owner>(entry.owner); }
  uint64_t first() const { return client_from_ < own_from_ ? client_from_ : own_from_; }
  uint64_t find(uint64_t tag) const;
  void make_room();
  void mark(Entry& entry, Owner owner);
  void advance();

  std::vector<Entry> ring_;   // a power of two, or empty
  uint64_t next_ = 0;         // the position of the next tag
  uint64_t client_from_ = 0;  // no entry before it is the client's
  uint64_t own_from_ = 0;     // no entry before it is bellhop's
  size_t client_count_ = 0;
  size_t own_count_ = 0;
};

}  // namespace bellhop
