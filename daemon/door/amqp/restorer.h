// Restorer: gives claim checks back as the payloads they stand for, in order, verified before the first byte
// goes out. Keeps what a store cannot give now, parks what none will ever give.
//
//   accept ─► queued ─► fetching ─┬─ object ──────────────► ready ──► streamed to the client
//                         ▲       ├─ missing, corrupt, bad key ──► parking ──► settled
//                         └─ waiting ◄─ unavailable (backoff, up to consume.hold_max, then the channel is
//                         closed)
//
// One thread (the session's).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <random>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Restorer {
 public:
  explicit Restorer(SessionCore& core);

  // Puts a delivery at the end of a lane; a plain one is handed over by pump().
  void push(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery);
  // A check at the end of its lane. Its tag is bellhop's already.
  void accept(Channel& channel, Lane& lane, std::shared_ptr<Delivery> delivery);
  // Hands the client what is ready at the front of the channel's lanes.
  void pump(Channel& channel);
  // The client's socket or the writer is free again: goes on with the stream, or with whatever is ready.
  void resume();
  // What the broker had sent was relayed: the next large body may begin. Without this a row of them would
  // keep the other channels waiting.
  void broker_had_its_turn() { yields_ = false; }
  bool is_yielding() const { return yields_; }
  // Retries what waits. From the session's tick. Milliseconds until something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

  // basic.recover: the broker has everything unacknowledged back.
  void recover(Channel& channel);
  // The broker's basic.cancel-ok or basic.cancel (`raw`, the whole frame). A client is handed nothing for a
  // consumer that is gone: what comes soon is awaited (true: `raw` is written behind it), what is held goes
  // back to its queue (false: `raw` is to be relayed).
  bool end_consumer(Channel& channel, const std::string& consumer_tag, Bytes raw);

  // Settles a tag that is bellhop's own. On a tx channel nobody may ever commit it: bellhop does, unless the
  // client's transaction is open.
  void settle_own(Channel& channel, uint64_t tag, bool reject = false, bool requeue = false);
  // tx: what a rollback of the client took back.
  void settle_again(Channel& channel);

  // The channel ends: parks what no_ack consumers were not handed.
  void give_up_held(Channel& channel);
  // Drops what the channel's lanes hold. A content that is half out goes on.
  void abandon(Channel& channel);

  // The client is gone or the connection ends: a content that is half out is given up.
  void cancel_stream();

  bool is_streaming() const { return stream_.has_value(); }
  // Something is on its way to a parked queue.
  bool is_parking() const { return parking_ != 0; }

 private:
  struct Stream {
    std::shared_ptr<Delivery> delivery;
    uint64_t offset = 0;
    bool reading = false;
  };

  bool pump_lane(Channel& channel, Lane& lane);
  void hand_plain(Channel& channel, Lane& lane);
  void begin_stream(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void read_more();
  void end_stream();
  void pop(Channel& channel, Lane& lane);

  void start(const std::shared_ptr<Delivery>& delivery);
  void ask(const std::shared_ptr<Delivery>& delivery);
  void fetched(const std::shared_ptr<Delivery>& delivery, FetchResult result);
  void wait(const std::shared_ptr<Delivery>& delivery, const std::string& why);
  void fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason);
  void park(const std::shared_ptr<Delivery>& delivery);
  void park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void give_back(Channel& channel, const std::string& consumer_tag);
  void commit_own(Channel& channel);
  void release_notices(Channel& channel);
  bool is_half_out(const std::shared_ptr<Delivery>& delivery) const {
    return stream_ && stream_->delivery == delivery;
  }
  void settle(const std::shared_ptr<Delivery>& delivery);
  std::vector<ClaimStore*> order_of_stores(const Delivery& delivery) const;
  void free_slot(Delivery& delivery);
  Channel* channel_of(const Delivery& delivery) const {
    return core_.channel(delivery.channel, delivery.generation);
  }

  SessionCore& core_;
  std::optional<Stream> stream_;
  std::deque<std::weak_ptr<Delivery>> queued_, waiting_;
  size_t parking_ = 0;
  bool yields_ = false;      // a body went out that took a while: no other is begun yet
  size_t next_channel_ = 0;  // whose turn it is to begin one
  std::minstd_rand jitter_;
};

}  // namespace bellhop
