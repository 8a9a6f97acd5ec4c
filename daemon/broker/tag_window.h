// The unsettled delivery tags of one channel, and who owns each: the client (it was handed the delivery) or
// bellhop (held, being parked, or acknowledged by bellhop itself). Only books: no I/O. Tags come in rising
// order. The session's thread.
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

  // The broker delivered it. Call it for every delivery while one is bellhop's. A tag that is not greater
  // than every earlier one is ignored.
  void add(uint64_t tag, Owner owner);
  Owner owner(uint64_t tag) const;       // settled also for a tag never seen
  void give(uint64_t tag, Owner owner);  // changes the owner of an unsettled tag
  // What the client's ack, nack or reject of `tag` covers, as frames for the broker; marks it settled. Tag 0
  // with `multiple`: everything that the client was handed. The pieces never cover a tag of bellhop's. `ok`
  // and no pieces: nothing is left to settle. Not `ok`: the tag is bellhop's, or one that the client cannot
  // name: a 406. A tag that the window does not know gives `ok` and the piece as it came: the broker answers
  // that itself.
  struct Covered {
    bool ok = true;
    std::vector<Piece> pieces;
  };
  // In a transaction the tags only become in_tx (`to`), until end_tx().
  Covered settle(uint64_t tag, bool multiple, Owner to = Owner::settled);
  void settle_own(uint64_t tag);  // bellhop settled it
  // Whether no unsettled tag is bellhop's. Then relay the client's frame as it is, and call settle_plain,
  // which allocates nothing.
  bool is_plain() const;
  void settle_plain(uint64_t tag, bool multiple, Owner to = Owner::settled);
  void end_tx(bool committed);      // a rollback makes the tags the client's again
  size_t client_unsettled() const;  // O(1)
  void clear();                     // basic.recover, channel closed

 private:
  // A ring of the tags seen, in rising order, from the oldest unsettled one; positions count up for ever.
  // When the ring is full, settled tags in the middle are squeezed out, so that one old unsettled tag does
  // not let it grow.
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
