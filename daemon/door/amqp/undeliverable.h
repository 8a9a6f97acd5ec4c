// Undeliverable: what becomes of a delivery that the client will not be handed, because no store will ever
// give its payload or because its no_ack consumer is gone: parked (or rejected, by configuration), then the
// original is acknowledged.
//
//   fail ─┬─ a return ─────────────► the channel is closed
//         ├─ of a stream ──────────► skipped
//         ├─ on_undeliverable: reject ► rejected
//         └─ else ─► parking ─┬─ parked ───► settled
//                             └─ not now ──► waiting (fetcher), then parked again
//
// One thread (the session's).
#pragma once

#include <memory>
#include <string>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Undeliverable {
 public:
  explicit Undeliverable(SessionCore& core) : core_(core) {}

  // A permanent failure of a delivery in its lane.
  void fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason);
  void park(const std::shared_ptr<Delivery>& delivery);
  // The broker has forgotten it, and its client will not be handed it.
  void park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // The channel ends: parks what no_ack consumers were not handed.
  void give_up_held(Channel& channel);

  // Something is on its way to a parked queue.
  bool is_parking() const { return parking_ != 0; }

 private:
  void settle(const std::shared_ptr<Delivery>& delivery);

  SessionCore& core_;
  size_t parking_ = 0;
};

}  // namespace bellhop
