#include "daemon/door/amqp/delivery.h"

#include <utility>

namespace bellhop {

void Delivery::wait_for_transfer(uint64_t now_ms) {
  BELLHOP_ASSERT(is(State::plain) || is(State::waiting), "a delivery queues for a transfer before its fetch");
  state_ = State::queued;
  quiet_since_ms = now_ms;
}

void Delivery::fetch(TransferSlot taken, uint64_t now_ms) {
  BELLHOP_ASSERT(is(State::plain) || is(State::waiting) || is(State::queued),
                 "a delivery is fetched once at a time");
  state_ = State::fetching;
  slot = std::move(taken);
  next_store = 0;
  unavailable.clear();
  reason.clear();
  watch = std::make_shared<FetchWatch>();
  pieces_seen = 0;
  quiet_since_ms = now_ms;
  is_stalled = false;
}

void Delivery::wait_for_store(std::string why) {
  BELLHOP_ASSERT(is(State::fetching), "a delivery waits for a store that was asked");
  state_ = State::waiting;
  slot.end();
  watch.reset();
  unavailable = std::move(why);
}

void Delivery::take_object(std::shared_ptr<LocalObject> given) {
  BELLHOP_ASSERT(is(State::fetching), "a delivery takes the object that it asked for");
  state_ = State::ready;
  watch.reset();
  object = std::move(given);
  held.end();
}

void Delivery::fail(std::string why) {
  BELLHOP_ASSERT(!is(State::parking) && !is(State::handed) && !is(State::ended),
                 "a delivery fails before its outcome is known");
  state_ = State::failed;
  slot.end();
  watch.reset();
  reason = std::move(why);
  held.end();
}

Buffer Delivery::spill(std::shared_ptr<SpillFile> file, uint64_t offset) {
  BELLHOP_ASSERT(is(State::plain) && !open, "a delivery is spilled when it is whole");
  state_ = State::spilled;
  spilled_in = std::move(file);
  spilled_at = offset;
  spilled_bytes = spilling_bytes_ = frames.size();
  return std::exchange(frames, {});
}

void Delivery::spilled() {
  const size_t bytes = std::exchange(spilling_bytes_, 0);
  if (memory.is_active()) memory.shrink(bytes);
}

void Delivery::bring_back() {
  BELLHOP_ASSERT(is(State::spilled), "a delivery returns from where it was spilled");
  state_ = State::returning;
}

void Delivery::make_plain(Buffer given) {
  BELLHOP_ASSERT(!is(State::fetching) && !is(State::ready) && !is(State::handed) && !is(State::ended),
                 "a delivery is plain before it is handed over");
  state_ = State::plain;
  spilled_in.reset();
  spilling_bytes_ = 0;
  frames = std::move(given);
  method = header = body = {};
  if (memory.is_active()) memory.resize(held_bytes());
}

void Delivery::park() {
  BELLHOP_ASSERT(!is(State::handed), "a delivery that the client has is not parked");
  state_ = State::parking;
  held.end();
  slot.end();
  watch.reset();
}

void Delivery::end() {
  state_ = State::ended;
  held.end();
  slot.end();
  watch.reset();
}

void Delivery::hand() {
  BELLHOP_ASSERT(is(State::ready), "a delivery is handed over when its object is there");
  state_ = State::handed;
  slot.end();
}

}  // namespace bellhop
