// DeliveryAssembly: the content that is arriving from the broker on one channel. Plain state.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/door/amqp/borrowed_frame.h"
#include "daemon/door/amqp/delivery.h"
#include "daemon/door/amqp/publish.h"

namespace bellhop {

struct DeliveryAssembly {
  enum class Stage : uint8_t { idle, header, start, relaying, collecting, dropping };
  Stage stage = Stage::idle;
  DeliveryKind kind = DeliveryKind::deliver;
  BorrowedFrame method, header;
  uint64_t body_bytes = 0, received_bytes = 0;
  bool unframed = false;   // an inline prefix is taken off
  size_t strip_bytes = 0;  // of the next body frame: the rest of an inline prefix
  bool reframed = false;   // a prefix is left out, or the client's frames are smaller: framed anew
  Buffer refill;           // reframed: what does not fill a frame yet
  uint64_t tag = 0;
  bool no_ack = false, settle_when_handed = false;
  bool queued = false;              // relaying into `entry`, not to the client
  std::shared_ptr<Delivery> entry;  // queued: its place in its queue. Others may stand behind it already
  bool stale = false;               // requeued by a basic.recover that is on its way
  bool tagged = false;              // the tag is in the channel's window already
  uint64_t client_tag = 0;          // a return that was queued: the confirm that waits for its end
  // The client has its first frames: nothing may stand between them and the last.
  bool is_half_out() const { return stage == Stage::relaying && !queued; }
  Buffer start;        // raw body frames that came before the third body byte, then (collecting) the body
  MemoryLease memory;  // collecting: of `start`
  std::unique_ptr<Sent> match;  // a return: the publish it belongs to
};

}  // namespace bellhop
