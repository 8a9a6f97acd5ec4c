#include "daemon/wire/outbox.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace bellhop {
namespace {

constexpr size_t copy_bytes_max = 2048;          // of a borrow
constexpr size_t pieces_max = 256;               // of one sendmsg
constexpr size_t kept_bytes_max = 256 * 1024;    // more capacity than this is given back when nothing waits
constexpr size_t compact_bytes_min = 64 * 1024;  // a smaller sent prefix is not worth moving the rest for

}  // namespace

void Outbox::record_open() {
  if (owned_.size() == recorded_) return;
  const size_t size = owned_.size() - recorded_;
  segments_.push_back({nullptr, recorded_, size, false});
  segments_bytes_ += size;
  recorded_ = owned_.size();
}

void Outbox::borrow(Bytes bytes) {
  if (bytes.empty()) return;
  // Behind bytes that are owned anyway, a small copy is cheaper than one more piece for the kernel.
  if (bytes.size() <= copy_bytes_max && owned_.size() != recorded_) {
    append(bytes);
    return;
  }
  record_open();
  segments_bytes_ += bytes.size();
  if (first_ < segments_.size()) {
    Segment& last = segments_.back();
    if (last.elsewhere != nullptr && !last.is_held && last.elsewhere + last.size == bytes.data()) {
      last.size += bytes.size();
      return;
    }
  }
  segments_.push_back({bytes.data(), 0, bytes.size(), false});
}

void Outbox::hold(Bytes bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  record_open();
  segments_bytes_ += bytes.size();
  segments_.push_back({bytes.data(), 0, bytes.size(), true});
  owners_.push_back(std::move(owner));
}

ssize_t Outbox::flush(int fd) {
  record_open();
  size_t total = 0;
  while (segments_bytes_ > 0) {
    iovec pieces[pieces_max];
    size_t count = 0, wanted = 0;
    for (size_t i = first_; i < segments_.size() && count < pieces_max; ++i, ++count) {
      const Segment& segment = segments_[i];
      const uint8_t* at = segment.elsewhere != nullptr ? segment.elsewhere : owned_.data() + segment.offset;
      pieces[count] = {const_cast<uint8_t*>(at), segment.size};
      wanted += segment.size;
    }
    ssize_t sent;
    if (count == 1) {  // the usual case; a list of pieces costs the kernel more
      sent = ::send(fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = pieces;
      message.msg_iovlen = count;
      sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      const int reason = errno;
      clear();
      errno = reason;
      return -1;
    }
    total += static_cast<size_t>(sent);
    drop_sent(static_cast<size_t>(sent));
    if (static_cast<size_t>(sent) < wanted) break;
  }
  own();
  return static_cast<ssize_t>(total);
}

Bytes Outbox::front() {
  record_open();
  const Segment& segment = segments_[first_];
  return {segment.elsewhere != nullptr ? segment.elsewhere : owned_.data() + segment.offset, segment.size};
}

void Outbox::drop_front(size_t count) {
  drop_sent(count);
  if (segments_bytes_ == 0) reset_when_empty();
}

void Outbox::drop_sent(size_t sent) {
  segments_bytes_ -= sent;
  while (sent > 0) {
    Segment& segment = segments_[first_];
    const size_t part = std::min(sent, segment.size);
    if (segment.elsewhere != nullptr) {
      segment.elsewhere += part;
    } else {
      segment.offset += part;
    }
    segment.size -= part;
    sent -= part;
    if (segment.size != 0) continue;
    ++first_;
    if (segment.is_held) owners_.pop_front();
  }
}

// Afterwards, if nothing is held, at most one segment is left, all of it owned. What was owned before the
// first borrowed piece stays where it is, so a socket that stays full costs a copy of the new bytes only.
void Outbox::own() {
  record_open();
  if (segments_bytes_ == 0) {
    reset_when_empty();
    return;
  }
  if (!owners_.empty()) {
    own_between_held();
    return;
  }
  size_t begin = segments_[first_].elsewhere == nullptr ? segments_[first_].offset : owned_.size();
  size_t i = first_;
  size_t keep_until = begin;
  bool only_owned = true;
  for (; i < segments_.size(); ++i) {
    if (segments_[i].elsewhere != nullptr) {
      only_owned = false;
      break;
    }
    keep_until = segments_[i].offset + segments_[i].size;
  }
  if (!only_owned) {
    if (i == first_) {
      // The owned pieces behind it, if there are any, begin where the first of them does.
      begin = keep_until = owned_.size();
      for (size_t j = i; j < segments_.size(); ++j) {
        if (segments_[j].elsewhere == nullptr) {
          begin = keep_until = segments_[j].offset;
          break;
        }
      }
    }
    moved_.assign(owned_.begin() + static_cast<ptrdiff_t>(keep_until), owned_.end());
    owned_.resize(keep_until);
    for (; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.elsewhere != nullptr) {
        put(owned_, {segment.elsewhere, segment.size});
      } else {
        put(owned_, {moved_.data() + (segment.offset - keep_until), segment.size});
      }
    }
    if (moved_.capacity() > kept_bytes_max) Buffer().swap(moved_);
  }
  if (begin >= compact_bytes_min && begin >= owned_.size() - begin) {
    owned_.erase(owned_.begin(), owned_.begin() + static_cast<ptrdiff_t>(begin));
    begin = 0;
  }
  segments_.clear();
  first_ = 0;
  segments_.push_back({nullptr, begin, owned_.size() - begin, false});
  recorded_ = owned_.size();
}

// What stands between held pieces is little, frames' heads and ends, so all of it is copied anew.
void Outbox::own_between_held() {
  moved_.clear();
  std::vector<Segment> kept;
  for (size_t i = first_; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.is_held) {
      kept.push_back(segment);
      continue;
    }
    const uint8_t* at = segment.elsewhere != nullptr ? segment.elsewhere : owned_.data() + segment.offset;
    if (kept.empty() || kept.back().is_held) kept.push_back({nullptr, moved_.size(), 0, false});
    kept.back().size += segment.size;
    put(moved_, {at, segment.size});
  }
  segments_ = std::move(kept);
  first_ = 0;
  owned_.swap(moved_);
  recorded_ = owned_.size();
  if (moved_.capacity() > kept_bytes_max) Buffer().swap(moved_);
}

void Outbox::reset_when_empty() {
  segments_.clear();
  owners_.clear();
  first_ = 0;
  segments_bytes_ = 0;
  recorded_ = 0;
  owned_.clear();
  if (owned_.capacity() > kept_bytes_max) Buffer().swap(owned_);
}

void Outbox::clear() {
  reset_when_empty();
}

}  // namespace bellhop
