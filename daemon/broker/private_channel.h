// PrivateChannel: the session's own channel of its broker connection, for hops and parks (ARCHITECTURE.md,
// "Hops and parks have a channel of their own"). It is in confirm mode and always mandatory: the client's
// channel may be transactional or without confirms, and a bad destination would close it.
//
//   closed ──post──► opening ──open-ok──► selecting ──select-ok──► ready
//     ▲                                                              │ channel.close
//     └───────── each pending item is tried again alone ◄────────────┘
//
// One thread (the session's). Writes into the broker link's outbox; the session flushes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "proto/bytes.h"
#include "proto/frame.h"

namespace bellhop {

class Outbox;

class PrivateChannel {
 public:
  struct Outcome {
    // refused: the broker closed the channel because of this item.
    enum class Kind { acked, nacked, returned, refused };
    Kind kind = Kind::acked;
    uint16_t code = 0;  // of a return or a close
    std::string text;
  };
  struct Item {
    std::string exchange, routing_key, message_id;  // tell which item a return belongs to
    // A question: `frames` is an exchange.declare, which the broker answers with its -ok (acked) or by
    // closing the channel (refused). It is sent when nothing else of the channel is under way, and nothing is
    // sent before its answer.
    bool asks = false;
    // When set, called before the item is sent: what was posted earlier may have changed where it goes.
    std::function<void(Item&)> prepare;
    // Not empty: when the item comes back unroutable, this queue is declared (classic, durable, no arguments)
    // and the item sent again.
    std::string declare_queue;
    Buffer frames;                             // basic.publish (mandatory), header and body, on channel id()
    std::function<void(const Outcome&)> done;  // once, from on_frame; never when the session ends first
    bool declares = false;                     // the channel's own: it came back once
  };

  PrivateChannel(uint16_t id, Outbox& out) : id_(id), out_(out) {}

  uint16_t id() const { return id_; }
  void post(Item item);
  // Precondition: frame.channel == id(). False: the broker broke the protocol.
  bool on_frame(const proto::Frame& frame);
  bool is_idle() const { return waiting_.empty() && in_flight_.empty(); }

 private:
  enum class State { closed, opening, selecting, ready };
  struct Flying {
    Item item;
    uint64_t tag = 0;
    bool returned = false;
    uint16_t code = 0;
    std::string text;
  };

  void pump();
  void send(Item item);
  void answered();
  void settle(uint64_t tag, bool multiple, bool nack);
  void on_return(const proto::Frame& frame);
  void on_close(const proto::Frame& frame);

  const uint16_t id_;
  Outbox& out_;
  State state_ = State::closed;
  std::deque<Item> waiting_;
  std::deque<Flying> in_flight_;
  uint64_t next_tag_ = 1;
  size_t alone_ = 0;  // so many items at the front of waiting_ are sent one at a time
  bool declaring_ = false;
  // The return whose content is arriving.
  bool return_open_ = false;
  uint16_t return_code_ = 0;
  std::string return_text_, return_exchange_, return_key_;
  uint64_t return_rest_bytes_ = 0;
};

}  // namespace bellhop
