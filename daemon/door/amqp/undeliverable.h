// Undeliverable: what becomes of a delivery that the client will not be handed, because no store gives its
// payload or because its no_ack consumer is gone: parked (or rejected, by configuration), then the original
// is acknowledged. Those behind it go on meanwhile.
//
//   fail ─┬─ a return ────────────────────► given up: its publish is nacked, its payload stays in the store
//         ├─ out of a parked queue, or not readable ► handed over as it stands
//         ├─ of a stream ─────────────────► skipped
//         ├─ on_undeliverable: reject ────► rejected
//         └─ else ─► parking ─┬─ parked ──► settled
//                             ├─ not now ─► set aside, parked again later
//                             └─ never ───► left: it alone stays unacknowledged
//
// One that the broker has forgotten (no_ack) is never left: it is handed over as it stands.
// One thread (the session's).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/door/amqp/parks.h"
#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Undeliverable {
 public:
  explicit Undeliverable(SessionCore& core) : core_(core) {}

  // A delivery in its lane that no store gives.
  void fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason);
  // The broker has forgotten it, and its client will not be handed it.
  void park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // The channel ends: parks what no_ack consumers were not handed.
  void give_up_held(Channel& channel);
  // Tries again what could not be parked. Milliseconds until something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

  // Something is on its way to a parked queue.
  bool is_parking() const { return parking_ != 0; }
  // A get waits for its park: what stands behind it waits too.
  bool is_parking_gets() const { return parking_gets_ != 0; }
  // So much is on its way that the broker is not read. Its answers stand behind what it had sent before, of
  // which RabbitMQ has only so many on their way, whatever their size.
  bool is_full() const;

 private:
  struct Aside {
    std::shared_ptr<Delivery> delivery;
    uint64_t retry_at_ms;
  };

  void give_up_return(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void park(const std::shared_ptr<Delivery>& delivery);
  void parked(const std::shared_ptr<Delivery>& delivery, Parks::Outcome outcome, const std::string& why);
  void not_parked(Channel& channel, const std::shared_ptr<Delivery>& delivery, Parks::Outcome outcome,
                  const std::string& why);
  void set_aside(const std::shared_ptr<Delivery>& delivery);
  bool hand_over(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void settle(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void answer_get(Channel& channel, Delivery& delivery);
  void tell_lost(const Delivery& delivery, const std::string& why);

  SessionCore& core_;
  size_t parking_ = 0, parking_gets_ = 0;
  uint64_t parking_bytes_ = 0;
  std::vector<Aside> aside_;
};

}  // namespace bellhop
