// The bytes that wait for one socket, in order. Some are owned here, some are borrowed from where they were
// read, some are held by a share in their owner. One send or sendmsg takes a whole batch, so that relaying a
// read of many frames costs one system call and no copy. Hot path: no allocation in steady state.
//
//     owned_    |..sent..|== O1 ==|= O2 =|-- open: appended since the last borrow --|
//     segments_           [O1] [B1 ->elsewhere] [O2] [H1 ->elsewhere, owners_[0]]
//
// One thread (the session's).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "proto/bytes.h"

namespace bellhop {

class Outbox {
 public:
  // Copies.
  void append(Bytes bytes) { put(owned_, bytes); }
  // A codec appends here directly; what it pushes to the end waits like appended bytes. Only push to the end.
  // The reference is good until any other call.
  Buffer& tail() { return owned_; }
  // Takes a reference. The bytes must stay as they are until the next flush() or own() returns. A borrow that
  // begins where the last one ends, with nothing appended in between, becomes one piece with it.
  void borrow(Bytes bytes);

  // Takes a share in the bytes' owner, who keeps them until they are sent. They are never copied, and only
  // the kernel reads them, so they may be a mapped file.
  void hold(Bytes bytes, std::shared_ptr<const void> owner);

  // Sends what waits, up to 256 pieces with one system call. Returns the bytes that the socket took. Fewer
  // than pending() was: the socket is full, and what was borrowed and not sent has been copied. -1 with
  // errno: the socket is broken, and everything is dropped.
  ssize_t flush(int fd);
  // For a caller that sends otherwise: the piece that waits first, and that the socket took `count` bytes of
  // it. Preconditions: not empty(); count <= front().size(). front()'s bytes are good until any other call.
  Bytes front();
  void drop_front(size_t count);
  // Copies what is borrowed (not what is held) without sending, when the socket is known to be full.
  void own();
  void clear();

  size_t pending() const { return segments_bytes_ + (owned_.size() - recorded_); }
  bool empty() const { return pending() == 0; }

 private:
  struct Segment {
    const uint8_t* elsewhere;  // null: owned_[offset, offset + size)
    size_t offset;
    size_t size;
    bool is_held;
  };
  void record_open();
  void drop_sent(size_t sent);
  void reset_when_empty();
  void own_between_held();

  Buffer owned_;
  Buffer moved_;                                    // scratch of own(), kept for its capacity
  std::vector<Segment> segments_;                   // segments_[first_] is the next to send
  std::deque<std::shared_ptr<const void>> owners_;  // of the held ones, in their order
  size_t first_ = 0;
  size_t recorded_ = 0;  // how much of owned_ the segments cover (or has been sent)
  size_t segments_bytes_ = 0;
};

}  // namespace bellhop
