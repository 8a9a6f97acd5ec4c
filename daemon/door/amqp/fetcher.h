// Fetcher: gets the payloads of claim checks from the stores, verified before the first byte goes out, and
// keeps what no store can give now.
//
//   accept ─► queued ─► fetching ─┬─ object ──────────────► ready: its lane hands it over
//                         ▲       ├─ missing, corrupt, bad key or store ──► undeliverable
//                         └─ waiting ◄─ unavailable (backoff, up to consume.hold_max, then the channel is
//                         closed)
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
  // Tries again later, until consume.hold_max is over: a store, or (permanent) the parked queue.
  void hold(const std::shared_ptr<Delivery>& delivery, const std::string& why);
  // Gives back the delivery's transfer, if it has one: the next that is queued starts.
  void free_slot(Delivery& delivery);
  // Retries what waits. From the session's tick. Milliseconds until something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

 private:
  void ask(const std::shared_ptr<Delivery>& delivery);
  void fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result);
  void refuse(Channel& channel, const std::shared_ptr<Delivery>& delivery, const std::string& why);
  bool may_ask(const Delivery& delivery, const std::string& store) const;
  std::vector<ClaimStore*> order_of_stores(const Delivery& delivery) const;

  SessionCore& core_;
  std::deque<std::weak_ptr<Delivery>> queued_, waiting_;
  std::minstd_rand jitter_;
};

}  // namespace bellhop
