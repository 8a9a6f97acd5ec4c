// Fetcher: gets the payloads of claims from the stores, verified before the first byte goes out, and
// keeps what no store can give now.
//
//   accept ─► queued ─► fetching ─┬─ object ──────────────► ready: its queue hands it over
//                         ▲       ├─ missing, corrupt, bad key or store ──► failed
//                         └─ waiting ◄─ unavailable (backoff, up to consume.hold_max, then failed)
//
// A store that stands still gives no answer at all: what it has been silent about for consume.hold_max, and
// for 10 s at least, has failed too. A late answer is ignored. What failed is taken from here with
// take_failed().
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
#include <utility>
#include <vector>

#include "daemon/door/amqp/channels.h"
#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/ops/executor.h"

namespace bellhop {

class Fetcher {
 public:
  // `executor` runs what the stores answer on the session's thread.
  Fetcher(const SessionState& state, SessionHost& host, Channels& channels, SessionMemory& memory,
          TransferSlots& slots, std::shared_ptr<Executor> executor);

  // Puts a claim at the end of its queue and begins with it. Its tag is bellhop's already.
  void accept(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // Asks the stores from the first on; queued while the session's transfers are all taken.
  void start(const std::shared_ptr<Delivery>& delivery);
  // Begins with what is queued as far as there are places. Once a turn.
  void pump();
  // Deliveries that no store gives, in the order in which that was found. Those of channels that have ended
  // are among them.
  std::vector<std::shared_ptr<Delivery>> take_failed() { return std::exchange(failed_, {}); }
  bool has_failed() const { return !failed_.empty(); }
  // Retries what waits, and fails what no store answers. From the session's tick. Milliseconds until
  // something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

 private:
  // Asks again later. Once consume.hold_max is over, or at once when the delivery came back before, it has
  // failed.
  void hold(const std::shared_ptr<Delivery>& delivery, const std::string& why);
  void give_up(const std::shared_ptr<Delivery>& delivery);
  void tell_held(Delivery& delivery) const;
  void tell_restored(const Delivery& delivery, const LocalObject& object) const;
  std::optional<uint64_t> retry();
  std::optional<uint64_t> look_for_silence();
  // How long nothing may come of it.
  uint64_t patience_ms(const Delivery& delivery) const;
  void ask(const std::shared_ptr<Delivery>& delivery);
  void fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result);
  void fail(const std::shared_ptr<Delivery>& delivery, const std::string& why);
  bool may_ask(const Delivery& delivery, const std::string& store) const;
  std::vector<std::shared_ptr<ClaimStore>> order_of_stores(const Delivery& delivery) const;

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  SessionMemory& memory_;
  TransferSlots& slots_;
  const std::shared_ptr<Executor> executor_;
  std::deque<std::weak_ptr<Delivery>> queued_, waiting_;
  std::vector<std::shared_ptr<Delivery>> failed_;
  uint64_t next_look_ms_ = 0;      // for silence
  uint64_t last_piece_at_ms_ = 0;  // of any of the session's fetches
  std::minstd_rand jitter_;
};

}  // namespace bellhop
