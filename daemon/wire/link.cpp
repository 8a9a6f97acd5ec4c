#include "daemon/wire/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/ops/assert.h"

namespace bellhop {
namespace {

constexpr uint32_t small_reads_before_shrink = 64;

}  // namespace

// libuv's handles need a home that lasts until their last close callback. `link` becomes null when the link
// closes or dies, which is also how a callback under way learns of it.
struct Link::Handle {
  uv_poll_t poll;
  uv_idle_t idle;  // only with TLS
  int open = 1;
  Link* link;
  std::function<void()> closed;

  void close(uv_handle_t* handle) {
    uv_close(handle, [](uv_handle_t* raw) {
      auto* const self = static_cast<Handle*>(raw->data);
      if (--self->open > 0) return;
      const std::unique_ptr<Handle> owned(self);
      if (owned->closed) owned->closed();
    });
  }
};

Link::Link(FileDescriptor fd, LinkOwner& owner, std::unique_ptr<TlsStream> tls, Bytes received)
    : fd_(std::move(fd)), owner_(owner), tls_(std::move(tls)) {
  if (received.empty()) return;
  capacity_ = std::max(read_bytes, received.size());
  buffer_.reset(new uint8_t[capacity_]);  // not zeroed
  std::memcpy(buffer_.get(), received.data(), received.size());
  end_ = received.size();
}

Link::~Link() {
  if (!is_closed()) close({});
}

Result<void> Link::start(uv_loop_t* loop) {
  BELLHOP_ASSERT(handle_ == nullptr && !is_closed(), "a link starts once, and before it is closed");
  auto handle = std::make_unique<Handle>();
  if (const int error = uv_poll_init(loop, &handle->poll, fd_.get()); error != 0) {
    return Error{std::string("cannot watch a socket: ") + uv_strerror(error)};
  }
  handle_ = handle.release();  // freed in the close callback
  handle_->link = this;
  handle_->poll.data = handle_;
  if (tls_ != nullptr) {
    uv_idle_init(loop, &handle_->idle);
    handle_->idle.data = handle_;
    ++handle_->open;
  }
  last_read_ms_ = last_written_ms_ = uv_now(loop);
  update_poll();
  return {};
}

void Link::close(std::function<void()> closed) {
  if (is_closed()) return;
  Handle* const handle = std::exchange(handle_, nullptr);
  FileDescriptor fd = std::move(fd_);
  outbox_.clear();
  if (tls_ != nullptr && write_error_.empty()) tls_->end(fd.get());
  if (handle == nullptr) {  // never started: there is no loop to call from
    fd.close();
    if (closed) closed();
    return;
  }
  handle->link = nullptr;
  handle->closed = std::move(closed);
  handle->close(reinterpret_cast<uv_handle_t*>(&handle->poll));
  if (tls_ != nullptr) handle->close(reinterpret_cast<uv_handle_t*>(&handle->idle));
  // uv_close took the descriptor out of the loop's epoll set already, so the peer need not wait for the
  // callback.
  fd.close();
}

// --- in ---

void Link::pause_reading() {
  if (paused_) return;
  paused_ = true;
  update_poll();
}

void Link::resume_reading() {
  if (!paused_) return;
  paused_ = false;
  update_poll();
}

void Link::release_idle() {
  if (tls_ != nullptr) tls_->release_idle();
  if (begin_ != end_) return;
  buffer_.reset();
  capacity_ = begin_ = end_ = 0;
  small_reads_ = 0;
}

// Moves what is left to the front, and makes the buffer as large as the next frame or as small as it usually
// needs to be.
void Link::make_room() {
  const size_t left = end_ - begin_;
  const size_t wanted = std::max(read_bytes, need_bytes_);
  size_t capacity = std::max(capacity_, wanted);
  small_reads_ = left <= read_bytes / 2 && wanted == read_bytes ? small_reads_ + 1 : 0;
  if (capacity_ > read_bytes && small_reads_ > small_reads_before_shrink) capacity = read_bytes;
  if (capacity != capacity_) {
    std::unique_ptr<uint8_t[]> larger(new uint8_t[capacity]);  // not zeroed
    if (left > 0) std::memcpy(larger.get(), buffer_.get() + begin_, left);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else if (begin_ > 0 && left > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, left);
  }
  begin_ = 0;
  end_ = left;
}

// Into the buffer's free end, as recv does.
ssize_t Link::receive() {
  if (tls_ != nullptr) return tls_->receive(fd_.get(), buffer_.get() + end_, capacity_ - end_);
  ssize_t received;
  do {
    received = ::recv(fd_.get(), buffer_.get() + end_, capacity_ - end_, 0);
  } while (received < 0 && errno == EINTR);
  return received;
}

// What a call that failed says by errno.
std::string Link::reason_of(const char* what) const {
  if (errno == EPROTO && tls_ != nullptr && !tls_->error().empty()) return tls_->error();
  return std::string(what) + ": " + std::strerror(errno);
}

// One recv. False: nothing more to do for this event, because the link ended, closed or has nothing to read.
// An end that follows a failed write is told by whoever called.
bool Link::read_once(Handle* handle) {
  make_room();
  if (end_ == capacity_) {  // only in drain_then_end: otherwise a full buffer is not polled for
    return false;
  }
  const ssize_t received = receive();
  if (received > 0) {
    end_ += static_cast<size_t>(received);
    need_bytes_ = 0;
    last_read_ms_ = uv_now(handle->poll.loop);
    owner_.on_bytes(*this);
    if (handle->link == nullptr) return false;
    update_poll();
    return true;
  }
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (!write_error_.empty()) {
    // A TLS alert that stands before the end says more than that a write failed.
    if (received < 0 && errno == EPROTO) write_error_ = reason_of("reading failed");
    return false;
  }
  end(received == 0 ? "the peer closed the connection" : reason_of("reading failed"));
  return false;
}

bool Link::read_rest() {
  if (is_closed()) return false;
  make_room();
  if (end_ == capacity_) return false;
  const ssize_t received = receive();
  if (received <= 0) return false;
  end_ += static_cast<size_t>(received);
  need_bytes_ = 0;
  return true;
}

// The socket is broken. What the peer said before (often why) is still in the kernel: it is handed up first,
// unless reading is paused.
void Link::drain_then_end(Handle* handle) {
  while (!paused_ && read_once(handle)) {
  }
  if (handle->link == nullptr || ended_) return;
  end(write_error_.empty() ? "the connection broke" : write_error_);
}

void Link::end(std::string reason) {
  ended_ = true;
  outbox_.clear();
  update_poll();
  owner_.on_end(*this, std::move(reason));  // may destroy us
}

// --- out ---

ssize_t Link::send() {
  return tls_ != nullptr ? tls_->flush(fd_.get(), outbox_) : outbox_.flush(fd_.get());
}

bool Link::has_unsent() const {
  return !outbox_.empty() || (tls_ != nullptr && tls_->has_unsent());
}

void Link::flush() {
  if (is_closed() || ended_ || !write_error_.empty()) {
    outbox_.clear();
    return;
  }
  if (!has_unsent()) return;
  if (blocked_ || handle_ == nullptr) {
    outbox_.own();
    blocked_ = true;
    update_poll();
    return;
  }
  const ssize_t sent = send();
  if (sent < 0) {
    // Told from the loop, so that nobody is called back from inside flush(). A broken socket is always
    // writable to poll.
    write_error_ = reason_of("writing failed");
    update_poll();
    return;
  }
  if (sent > 0) last_written_ms_ = uv_now(handle_->poll.loop);
  if (has_unsent()) {
    blocked_ = true;
    update_poll();
  }
}

// False: the link is closed or the socket broke.
bool Link::write_pending(Handle* handle) {
  const ssize_t sent = send();
  if (sent < 0) {
    write_error_ = reason_of("writing failed");
    blocked_ = false;
    return false;
  }
  if (sent > 0) last_written_ms_ = uv_now(handle->poll.loop);
  if (has_unsent()) return true;
  blocked_ = false;
  finish_shutdown();
  update_poll();
  owner_.on_writable_again(*this);
  return handle->link != nullptr;
}

void Link::shut_down_writes() {
  if (is_closed() || shut_wanted_) return;
  shut_wanted_ = true;
  flush();
  finish_shutdown();
}

void Link::finish_shutdown() {
  if (!shut_wanted_ || has_unsent() || blocked_ || is_closed()) return;
  if (tls_ != nullptr) tls_->end(fd_.get());
  ::shutdown(fd_.get(), SHUT_WR);
}

// --- the loop ---

// uv_poll_start is a pair of system calls, so it is called only when the wish changed.
void Link::update_poll() {
  if (handle_ == nullptr) return;
  full_ = !has_room();
  int wanted = 0;
  if (!ended_) {
    if (!paused_ && !full_) wanted |= UV_READABLE;
    if (blocked_ || !write_error_.empty()) wanted |= UV_WRITABLE;
  }
  if (tls_ != nullptr && idling_ != (may_read() && tls_->has_unread())) {
    idling_ = !idling_;
    if (idling_) {
      uv_idle_start(&handle_->idle, on_idle);
    } else {
      uv_idle_stop(&handle_->idle);
    }
  }
  if (wanted == mask_) return;
  mask_ = wanted;
  if (wanted == 0) {
    uv_poll_stop(&handle_->poll);
  } else {
    uv_poll_start(&handle_->poll, wanted, on_poll);
  }
}

void Link::on_poll(uv_poll_t* poll, int status, int events) {
  auto* const handle = static_cast<Handle*>(poll->data);
  Link* const link = handle->link;
  if (link == nullptr) return;
  if (status < 0) {  // POLLERR: libuv has stopped the poll
    link->mask_ = 0;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(link->fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error != 0 ? error : EPIPE;
    if (link->write_error_.empty()) link->write_error_ = link->reason_of("the connection broke");
    link->drain_then_end(handle);
    return;
  }
  if (!link->write_error_.empty()) {
    link->drain_then_end(handle);
    return;
  }
  if ((events & UV_WRITABLE) != 0 && link->blocked_) {
    if (!link->write_pending(handle)) {
      if (handle->link != nullptr) link->drain_then_end(handle);
      return;
    }
  }
  if ((events & UV_READABLE) != 0 && link->may_read()) link->read_once(handle);
}

void Link::on_idle(uv_idle_t* idle) {
  auto* const handle = static_cast<Handle*>(idle->data);
  Link* const link = handle->link;
  if (link == nullptr) return;
  if (link->may_read()) link->read_once(handle);
  if (handle->link != nullptr) link->update_poll();
}

}  // namespace bellhop
