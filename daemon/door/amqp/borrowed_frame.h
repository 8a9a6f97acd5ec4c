// BorrowedFrame: a frame whose bytes are borrowed from a link's buffer while its batch is handled, and owned
// afterwards. One thread (the session's).
#pragma once

#include "proto/bytes.h"
#include "proto/frame.h"

namespace bellhop {

class BorrowedFrame {
 public:
  void borrow(Bytes bytes) {
    view_ = bytes;
    // There may be thousands of channels: none keeps the memory of its largest header.
    if (copy_.capacity() > kept_bytes_max) Buffer().swap(copy_);
  }
  void detach() {
    if (view_.data() == copy_.data()) return;
    copy_.assign(view_.begin(), view_.end());
    view_ = copy_;
  }
  Bytes view() const { return view_; }
  Bytes payload() const {
    return view_.subspan(proto::frame_head_bytes, view_.size() - proto::frame_overhead_bytes);
  }

 private:
  static constexpr size_t kept_bytes_max = 4096;
  Bytes view_;
  Buffer copy_;
};

}  // namespace bellhop
