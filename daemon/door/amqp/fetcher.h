// Fetcher: gets the payloads of claim checks from the stores, verified before the first byte goes out, and
// keeps what no store can give now.
//
//   accept ─► queued ─► fetching ─┬─ object ──────────────► ready: its lane hands it over
//                         ▲       ├─ missing, corrupt, bad key or store ──► undeliverable
//                         └─ waiting ◄─ unavailable (backoff, up to consume.hold_max, then undeliverable)
//
// A store that stands still gives no answer at all: what it has been silent about for consume.hold_max, and
// for 10 s at least, is undeliverable too. A late answer is ignored.
//
// Never a requeue, and never a close of the channel for a store's sake: both count against a quorum queue's
// delivery limit, for all that the channel has not acknowledged.
//
// One thread (the session's).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Fetcher {
 public:
  explicit Fetcher(SessionCore& core);

  // Puts a check at the end of its lane and begins with it. Its tag is bellhop's already.
  void accept(Channel& channel, Lane& lane, const std::shared_ptr<Delivery>& delivery);
  // Asks the stores from the first on; queued while the session's transfers are all taken.
  void start(const std::shared_ptr<Delivery>& delivery);
  // Gives back the delivery's transfer, if it has one: the next that is queued starts.
  void free_slot(Delivery& delivery);
  // Retries what waits, and gives up what no store answers. From the session's tick. Milliseconds until
  // something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

 private:
  // Asks again later. Once consume.hold_max is over, or at once when the delivery came back before, it is
  // undeliverable.
  void hold(const std::shared_ptr<Delivery>& delivery, const std::string& why);
  void give_up(const std::shared_ptr<Delivery>& delivery);
  void tell_held(Delivery& delivery) const;
  std::optional<uint64_t> retry();
  std::optional<uint64_t> look_for_silence();
  // How long nothing may come of it.
  uint64_t patience_ms(const Delivery& delivery) const;
  void ask(const std::shared_ptr<Delivery>& delivery);
  void fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result);
  void refuse(Channel& channel, const std::shared_ptr<Delivery>& delivery, const std::string& why);
  bool may_ask(const Delivery& delivery, const std::string& store) const;
  std::vector<ClaimStore*> order_of_stores(const Delivery& delivery) const;

  SessionCore& core_;
  std::deque<std::weak_ptr<Delivery>> queued_, waiting_;
  uint64_t next_look_ms_ = 0;      // for silence
  uint64_t last_piece_at_ms_ = 0;  // of any of the session's fetches
  std::minstd_rand jitter_;
};

}  // namespace bellhop
