// Delivery: one message on its way from the broker to the client (basic.deliver, basic.get-ok or
// basic.return) that cannot be relayed at once: its payload is in a store, or it stands behind one whose
// payload is. Its channel's delivery queue owns it.
//
//   plain ──────────────────────────────► handed over as its frames
//   plain ─► spilled ─► returning ──────► plain (down/spill.h)
//   queued ─► fetching ─► ready ────────► handed (down/fetcher.h, down/body_stream.h)
//               │ ▲  waiting (no store can be reached)
//               ▼ ┘
//             failed ─► parking ─► ended, or plain again (down/undeliverable.h)
//
// Its state changes only by the functions here, each of which asserts where it may come from. What it holds
// of the session's memory and transfers ends with it, or earlier by name. One thread (the session's).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/claims/claim_store.h"
#include "daemon/door/amqp/session_memory.h"
#include "daemon/door/amqp/tap_line.h"
#include "daemon/door/amqp/transfer_slots.h"
#include "daemon/message/stored_claim.h"
#include "daemon/ops/session_meter.h"
#include "proto/bytes.h"

namespace bellhop {

class SpillFile;

// notice: no content, a method that must not overtake the deliveries before it (a consumer's cancel-ok).
enum class DeliveryKind : uint8_t { deliver, get_ok, returned, notice };

class Delivery {
 public:
  enum class State : uint8_t {
    plain,      // `frames` are what the client gets
    spilled,    // they are in a scratch file
    returning,  // they are being read from there
    queued,     // waits for a transfer's place
    fetching,   // a store was asked
    waiting,    // no store could be reached: asked again at retry_at_ms
    ready,      // `object` is local and verified
    handed,     // the client has the content whole
    failed,     // no store gives it, `reason` says why
    parking,    // being sent to the parked queue. A get's waits in its queue for that
    ended,      // parked, given back, skipped or left: nothing for the client
  };

  State state() const { return state_; }
  bool is(State state) const { return state_ == state; }

  // A transfer's place is awaited. From plain (a claim that just came) or waiting.
  void wait_for_transfer(uint64_t now_ms);
  // The stores are asked, from the first on. From plain, waiting or queued.
  void fetch(TransferSlot taken, uint64_t now_ms);
  // No store can be reached. The transfer's place is given back. From fetching.
  void wait_for_store(std::string why);
  // A store gave it. From fetching.
  void take_object(std::shared_ptr<LocalObject> given);
  // No store gives it, or never will. The transfer's place is given back. Not from parking, handed, ended.
  void fail(std::string why);
  // Its frames go to a file: given back to be written. They count as held until the file has them. From
  // plain.
  Buffer spill(std::shared_ptr<SpillFile> file, uint64_t offset);
  // The frames are in the file. From spilled or later.
  void spilled();
  // From spilled.
  void bring_back();
  // These are its frames. From spilled, returning, or when it is handed over as it stands: failed, parking.
  void make_plain(Buffer given);
  // From any but handed: also again after it could not be parked.
  void park();
  // Nothing is left for the client. Gives its transfer's place back.
  void end();
  // The client has all of it. From ready.
  void hand();

  // Bytes of the session's memory that it takes.
  uint64_t held_bytes() const {
    return sizeof(Delivery) + method.size() + header.size() + frames.size() + spilling_bytes_ + body.size() +
           (tapped != nullptr ? tapped->text.size() : 0);
  }

  // It has more bytes than before: they count as held.
  void grow() {
    if (memory.is_active()) memory.resize(held_bytes());
  }

  uint16_t channel = 0;
  uint64_t generation = 0;  // of the channel
  DeliveryKind kind = DeliveryKind::deliver;
  uint64_t tag = 0;                 // the broker's delivery tag; 0 for a return
  bool no_ack = false;              // the broker has forgotten it already
  bool settle_when_handed = false;  // bellhop acknowledges it after its last byte (basic.get with no_ack)
  std::string consumer_tag;         // deliver, notice
  std::string queue;                // where it came from, for a park

  Buffer frames;                    // plain: whole frames as the client gets them
  bool unframed = false;            // plain: an inline frame's prefix was stripped
  std::unique_ptr<TapLine> tapped;  // plain: told to the taps when it is handed over; null: nobody looked
  bool open = false;                // plain: more frames of its content are still to come

  std::shared_ptr<SpillFile> spilled_in;  // spilled, returning: where its frames are
  uint64_t spilled_at = 0;
  size_t spilled_bytes = 0;

  Buffer method, header, body;  // a claim: the payloads as the broker sent them (a return: method and header
                                // already the client's own)
  std::string key;
  std::string named_store;  // header bellhop-claim-store, when the header's key is the body's
  Expected expected;
  bool strip_claim_headers = false;
  // For how long nobody can say.
  bool waits_for_store() const { return is(State::waiting) || (is(State::fetching) && is_stalled); }

  size_t next_store = 0;    // position in the order of stores to ask
  uint64_t asked_by = 0;    // that order is of this generation of the configuration
  std::string unavailable;  // why the last round could not decide; empty when every store said no
  uint64_t retry_at_ms = 0, give_up_at_ms = 0;
  std::shared_ptr<FetchWatch> watch;  // fetching
  uint32_t pieces_seen = 0;           // of the watch
  uint64_t quiet_since_ms = 0;        // queued, fetching: since then nothing has come of it
  bool is_stalled = false;            // fetching: its store has not answered for a while
  bool was_held = false;              // the log knows
  CountLease held;                    // from then on, until its outcome is known
  uint32_t failures = 0;              // in a row: of rounds of fetches, then of parks
  bool is_told = false;               // that it can be neither restored nor parked
  bool is_answered = false;           // a get: the client knows that there is nothing for it
  std::string reason;                 // why a store said no, then why it is parked
  ParkReason counted_as = ParkReason::other;
  std::shared_ptr<ClaimStore> store;  // that was asked last, and has the object open
  std::shared_ptr<LocalObject> object;

  StoredClaim stored;       // a return: the publish that came back
  uint64_t client_tag = 0;  // a return: the publish whose confirm waits for it; 0 for none

  MemoryLease memory;  // while it is in a delivery queue
  TransferSlot slot;   // while a store is asked, and until the client has what came

 private:
  State state_ = State::plain;
  size_t spilling_bytes_ = 0;  // frames in memory until they are written
};

}  // namespace bellhop
