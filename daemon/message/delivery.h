// Delivery: one message on its way from the broker to the client (basic.deliver, basic.get-ok or
// basic.return) that bellhop cannot relay at once: its payload is in a store, or it stands behind such a
// message. One owner: a lane of its channel. The session's thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "daemon/claims/claim_store.h"
#include "daemon/message/transaction.h"
#include "proto/bytes.h"

namespace bellhop {

class SpillFile;

// notice: no content, a method that must not overtake the deliveries before it (a consumer's cancel-ok).
enum class DeliveryKind : uint8_t { deliver, get_ok, returned, notice };

struct Delivery {
  enum class State : uint8_t {
    plain,      // `frames` are what the client gets
    spilled,    // they are in a scratch file
    returning,  // they are being read from there
    queued,     // waits for a transfer's place
    fetching,   // a store was asked
    waiting,    // no store could be reached: asked again at retry_at_ms
    ready,      // `object` is local and verified
    parking,    // no store gives it: being sent to the parked queue. A get's waits in its lane for that
    settled,    // parked, skipped or left: nothing for the client
  };

  uint16_t channel = 0;
  uint64_t generation = 0;  // of the channel
  DeliveryKind kind = DeliveryKind::deliver;
  State state = State::plain;
  uint64_t tag = 0;                 // the broker's delivery tag; 0 for a return
  bool no_ack = false;              // the broker has forgotten it already
  bool settle_when_handed = false;  // bellhop acknowledges it after its last byte (basic.get with no_ack)
  std::string consumer_tag;         // deliver, notice
  std::string queue;                // where it came from, for a park

  Buffer frames;          // plain: whole frames as the client gets them
  bool unframed = false;  // plain: an inline frame's prefix was stripped
  bool open = false;      // plain: more frames of its content are still to come

  std::shared_ptr<SpillFile> spilled_in;  // spilled, returning: where its frames are
  uint64_t spilled_at = 0;
  size_t spilled_bytes = 0;
  size_t spilling_bytes = 0;  // of them in memory, until they are written

  Buffer method, header, body;  // a claim: the frames' payloads as the broker sent them (a return: method and
                                // header already the client's own)
  std::string key;
  std::string named_store;  // header bellhop-claim-store, when the header's key is the body's
  Expected expected;
  bool strip_claim_headers = false;
  // It waits, and nobody can say for how long.
  bool waits_for_store() const { return state == State::waiting || (state == State::fetching && is_stalled); }
  // Bytes of the session's memory that it takes until it leaves its lane.
  size_t held_bytes() const {
    return sizeof(Delivery) + method.size() + header.size() + frames.size() + spilling_bytes + body.size();
  }

  size_t next_store = 0;    // position in the order of stores to ask
  std::string unavailable;  // why the last round could not decide; empty when every store said no
  uint64_t retry_at_ms = 0, give_up_at_ms = 0;
  std::shared_ptr<FetchWatch> watch;  // fetching
  uint32_t pieces_seen = 0;           // of the watch
  uint64_t quiet_since_ms = 0;        // queued, fetching: since then nothing has come of it
  bool is_stalled = false;            // fetching: its store has not answered for a while
  bool was_held = false;              // the log knows
  uint32_t backoff_ms = 0;
  bool permanent = false;    // it is not to be handed over: no store is asked any more
  bool is_told = false;      // that it can be neither restored nor parked
  bool is_answered = false;  // a get: the client knows that there is nothing for it
  std::string reason;        // why a store said no, then why it is parked
  bool holds_slot = false;
  std::shared_ptr<LocalObject> object;

  Transaction transaction;  // a return: the publish that came back
  uint64_t client_tag = 0;  // a return: the publish whose confirm waits for it; 0 for none
};

using Lane = std::deque<std::shared_ptr<Delivery>>;

}  // namespace bellhop
