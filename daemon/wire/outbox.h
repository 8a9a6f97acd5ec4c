// The bytes that wait for one socket, in order: some owned here, some borrowed from where they were read,
// some held by a share in whoever keeps them. A batch goes out with one send or sendmsg, so that relaying a
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
  // Where a codec appends directly: what is pushed to its end waits like appended bytes. Only push to the
  // end; the reference is good until the next call of anything else here.
  Buffer& tail() { return owned_; }
  // Takes a reference. The bytes must stay as they are until the next flush() or own() returns. A borrow that
  // begins where the one before it ends (nothing appended in between) becomes one piece with it.
  void borrow(Bytes bytes);

  // Takes a share in the owner of the bytes, who keeps them until they are sent: never copied, and read by
  // the kernel alone, so they may be a mapped file.
  void hold(Bytes bytes, std::shared_ptr<const void> owner);

  // Sends what waits: one system call for up to 256 pieces. Returns the bytes that the socket took; less than
  // pending() was means that it is full, and what was borrowed and not sent has been copied. -1 (errno
  // tells): the socket is broken; everything is dropped.
  ssize_t flush(int fd);
  // For who sends otherwise: the piece that waits first, and that so many bytes of it were taken.
  // Precondition: not empty(); count <= front().size(). front()'s bytes are good until the next call of
  // anything else here.
  Bytes front();
  void drop_front(size_t count);
  // Copies what is borrowed (not what is held) without sending, for a socket that is known to be full.
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
