// One leg's socket on a session's loop: bytes in and bytes out; it knows no frames. It owns the descriptor,
// its uv_poll, the inbound buffer and an Outbox. The session borrows what one link read into the other link's
// outbox.
//
//     kernel ── recv ──► inbound buffer ── on_bytes ──► owner ── consume()
//     owner ── outbox().append/borrow ── flush() ──► one sendmsg ──► kernel
//
// A link may have a TlsStream, which stands between it and the kernel in both directions.
//
// Callbacks come only from the loop, never from inside flush() or another call, so an owner need not expect
// re-entry. An owner may close or destroy a link inside the link's own callbacks. One thread: the loop's.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/ops/assert.h"
#include "daemon/ops/file_descriptor.h"
#include "daemon/wire/outbox.h"
#include "daemon/wire/tls_stream.h"
#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop {

class Link;

struct LinkOwner {
  // New bytes are in unread(). Called once a read, however many frames it holds.
  virtual void on_bytes(Link& link) = 0;
  // A flush() fell short before; now everything that waited is out.
  virtual void on_writable_again(Link& link) = 0;
  // The peer ended or the socket broke. Comes once, after the last on_bytes. The owner then closes.
  virtual void on_end(Link& link, std::string reason) = 0;

 protected:
  ~LinkOwner() = default;
};

class Link {
 public:
  static constexpr size_t read_bytes = 64 * 1024;

  // Takes the descriptor, which must be non-blocking. The owner must outlive the link, or close() it first.
  // `tls`: null, or a stream whose handshake is done. `received`: bytes that were read from there before;
  // they are in unread() from the start, without an on_bytes.
  Link(FileDescriptor fd, LinkOwner& owner, std::unique_ptr<TlsStream> tls = nullptr, Bytes received = {});
  // Closes if close() was not called.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Begins to read. The outbox may be filled before. Error: libuv cannot watch the descriptor.
  Result<void> start(uv_loop_t* loop);

  // --- in ---
  // What was received and not consumed. All bytes, consumed ones too, stay where they are until the next
  // read, that is until control returns to the loop (or until release_idle()). So they may be borrowed into
  // another link's outbox that is flushed before.
  Bytes unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  // Precondition: count <= unread().size().
  void consume(size_t count) {
    BELLHOP_ASSERT(count <= end_ - begin_, "no more is consumed than is unread");
    begin_ += count;
    wake_if_full();
  }
  // The next frame needs `need_bytes` from the start of unread(): the buffer grows to hold them before the
  // next read. The owner bounds this (frame_max). Without this call a full buffer stops reading until
  // something is consumed.
  void expect(size_t need_bytes) {
    need_bytes_ = need_bytes;
    wake_if_full();
  }
  void pause_reading();
  // The owner looks itself at what is in unread() already; on_bytes comes with the next read.
  void resume_reading();
  bool is_paused() const { return paused_; }
  // For after on_end: what the peer sent before its end may still be in the kernel, because on_end does not
  // wait until the owner has room. Reads once more into unread(); false: there is nothing more. Moves bytes
  // as any read does.
  bool read_rest();
  // Frees the inbound buffer's memory if it is empty. For the owner's timer, on an idle session.
  void release_idle();

  // --- out ---
  Outbox& outbox() { return outbox_; }
  // Sends what waits; call it once a batch. After a short write the link keeps the rest, sends it as the
  // socket takes it, and then calls on_writable_again. on_end tells later of a broken socket.
  void flush();
  // The socket was full at the last flush, so what is added waits: a sign to pause the other leg.
  bool is_blocked() const { return blocked_; }
  // Ends our direction (FIN) once everything pending is out. Reading goes on until the peer ends too. Send
  // nothing afterwards.
  void shut_down_writes();

  // Stops everything, drops pending bytes and closes the descriptor at once. No callback comes afterwards.
  // The loop calls `closed` when libuv has let go, also if the link is destroyed before.
  void close(std::function<void()> closed);
  bool is_closed() const { return !fd_.is_open(); }
  int fd() const { return fd_.get(); }

  // In the loop's time (uv_now): when bytes last came, and when the socket last took some.
  uint64_t last_read_ms() const { return last_read_ms_; }
  uint64_t last_written_ms() const { return last_written_ms_; }

 private:
  struct Handle;  // outlives the link until libuv lets go
  static void on_poll(uv_poll_t* poll, int status, int events);
  static void on_idle(uv_idle_t* idle);

  void update_poll();
  void wake_if_full() {
    if (full_) update_poll();
  }
  bool may_read() const { return !ended_ && !paused_ && has_room(); }
  bool has_room() const { return end_ - begin_ < capacity_ || need_bytes_ > capacity_ || capacity_ == 0; }
  void make_room();
  ssize_t receive();
  ssize_t send();
  bool has_unsent() const;
  std::string reason_of(const char* what) const;
  bool read_once(Handle* handle);
  void drain_then_end(Handle* handle);
  bool write_pending(Handle* handle);
  void finish_shutdown();
  void end(std::string reason);

  FileDescriptor fd_;
  LinkOwner& owner_;
  std::unique_ptr<TlsStream> tls_;  // null: plain
  Handle* handle_ = nullptr;
  int mask_ = 0;         // what uv_poll watches now
  bool idling_ = false;  // reads what TLS holds, which uv_poll knows nothing of
  bool paused_ = false;
  bool full_ = false;     // not reading because the buffer has no room
  bool blocked_ = false;  // waiting for UV_WRITABLE
  bool ended_ = false;
  bool shut_wanted_ = false;
  std::string write_error_;  // told by on_end from the loop

  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0, begin_ = 0, end_ = 0;
  size_t need_bytes_ = 0;
  uint32_t small_reads_ = 0;  // reads in a row that a small buffer would have served
  Outbox outbox_;
  uint64_t last_read_ms_ = 0, last_written_ms_ = 0;
};

}  // namespace bellhop
