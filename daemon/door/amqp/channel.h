// Channel: what a session knows of one client channel. Plain state; the components of this folder work on it,
// each on its part: publisher on `in`, `queue` and `sent`; deliverer on `out`; lanes on `deliveries` and
// `returns`.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/routing_table.h"
#include "daemon/broker/confirm_window.h"
#include "daemon/broker/tag_window.h"
#include "daemon/message/delivery.h"
#include "daemon/ops/quota.h"
#include "proto/content_header.h"
#include "proto/method.h"

namespace bellhop {

// Bytes that are borrowed from a link's buffer while its batch is handled, and owned afterwards.
class Held {
 public:
  void borrow(Bytes bytes) {
    view_ = bytes;
    // There may be thousands of channels: none keeps the memory of its largest header.
    if (copy_.capacity() > kept_bytes_max) Buffer().swap(copy_);
  }
  void detach() {
    if (view_.data() == copy_.data()) return;
    copy_.assign(view_.begin(), view_.end());
    view_ = copy_;
  }
  Bytes view() const { return view_; }
  Bytes payload() const {
    return view_.subspan(proto::frame_head_bytes, view_.size() - proto::frame_overhead_bytes);
  }

 private:
  static constexpr size_t kept_bytes_max = 4096;
  Bytes view_;
  Buffer copy_;
};

// A publish that cannot be relayed as its frames come: its body goes to a store, or it is a hop.
struct PublishJob {
  Buffer method, header;  // payloads as the client sent them
  const config::Plan* plan = nullptr;
  bool hop = false;
  uint64_t body_bytes = 0;
  Buffer body;                     // a hop below the threshold: the payload
  std::unique_ptr<Upload> upload;  // null: the body is in `body`
  ClaimStore* store = nullptr;
  bool complete = false;      // the last body frame came
  bool settled = false;       // complete, and the upload (if any) has its outcome
  uint16_t refused_code = 0;  // settled: not 0 when the publish is refused
  std::string refused_text;
  bool refusal_closes = false;  // the channel, also where confirms could say it with a nack
  bool holds_slot = false;
  uint64_t reserved_bytes = 0;  // in `body`, until it is whole: only its client can make it that
  uint64_t unwritten_bytes =
      0;  // pieces that the store has not taken yet, or `body`: part of the session's memory
  Transaction transaction;
};

// One entry of a channel's order: what the client sent after something that is not finished yet.
struct Release {
  enum class Kind : uint8_t { publish, method, job };
  Kind kind = Kind::method;
  Buffer frames;                      // publish: frames for the broker so far; method: the client's frame
  bool open = false;                  // publish: more of its body is to come
  std::shared_ptr<PublishJob> job;    // job
  std::unique_ptr<struct Sent> sent;  // publish: what to remember of it
};

// What is remembered of a publish until it is settled: a return has to be handed back as the client sent it.
struct Sent {
  uint32_t token = 0;
  uint64_t client_tag = 0;  // 0 without confirms
  bool mandatory = false;
  bool framed = false;  // bellhop put AC 01 00 before the body
  uint32_t tx_number = 0;
  std::string exchange, routing_key;            // the client's
  std::string sent_exchange, sent_routing_key;  // bellhop's
  std::string message_id;                       // as sent
  uint64_t sent_body_bytes = 0;
  size_t sent_header_hash = 0;
  Buffer header;  // the client's content header payload
  Transaction transaction;
  QuotaShare of_session, of_process;  // of what may be remembered
  size_t bytes() const {
    return sizeof(Sent) + exchange.size() + routing_key.size() + sent_exchange.size() +
           sent_routing_key.size() + message_id.size() + header.size();
  }
};

// The publish whose frames are arriving.
struct PublishAssembly {
  enum class Stage : uint8_t { idle, header, start, relaying, job, dropping };
  Stage stage = Stage::idle;
  Held method, header;  // raw frames
  // Both frames decoded, while their bytes are still borrowed.
  bool is_decoded = false;
  proto::Publish publish;
  proto::ContentHeader content;
  const config::Plan* plan = nullptr;
  bool hop = false;
  uint64_t body_bytes = 0, received_bytes = 0;
  Buffer start;  // raw body frames that came before the third body byte
  std::shared_ptr<PublishJob> job;
};

// The content that is arriving from the broker.
struct DeliveryAssembly {
  enum class Stage : uint8_t { idle, header, start, relaying, collecting, dropping };
  Stage stage = Stage::idle;
  DeliveryKind kind = DeliveryKind::deliver;
  Held method, header;  // raw frames
  uint64_t body_bytes = 0, received_bytes = 0;
  size_t strip_bytes = 0;  // of the next body frame: the rest of an inline prefix
  bool stripped = false;   // the prefix is left out: the body is framed anew
  Buffer refill;           // stripped: what does not fill a frame yet
  uint64_t tag = 0;
  bool no_ack = false, settle_when_handed = false;
  bool queued = false;      // relaying into the last entry of its lane, not to the client
  bool stale = false;       // requeued by a basic.recover that is on its way
  bool tagged = false;      // the tag is in the channel's window already
  uint64_t client_tag = 0;  // a return that was queued: the confirm that waits for its end
  // The client has its first frames: nothing may stand between them and the last.
  bool is_half_out() const { return stage == Stage::relaying && !queued; }
  Buffer start;  // raw body frames that came before the third body byte, then (collecting) the body
  std::unique_ptr<Sent> match;  // a return: the publish it belongs to
};

// For maps that are searched by views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Consumer {
  std::string queue;
  bool no_ack = false;
  // basic.cancel sent up and not answered. The tag may be in use again meanwhile: is_ended is false then.
  size_t cancels_awaited = 0;
  bool is_ended = false;
  config::PipelineStep input = {};  // what its queue is
};

struct Channel {
  explicit Channel(uint16_t channel_id, uint64_t channel_generation)
      : id(channel_id), generation(channel_generation) {}

  enum class State : uint8_t {
    open,
    client_closing,  // the client's channel.close went up
    broker_closing,  // the broker's channel.close was handed on
    local_closing,   // closed by bellhop: the broker is told, then the client
  };
  // Why bellhop closes the channel. The broker is told at once, the client when the broker has answered all
  // that the channel said before.
  struct LocalClose {
    uint16_t code;
    std::string text;
    uint32_t method;
    bool answers_client = false;  // the client's own close was on its way
  };

  const uint16_t id;
  const uint64_t generation;  // tells apart two lives of one id
  State state = State::open;
  std::optional<LocalClose> untold;  // local_closing: the client does not know yet
  bool closes_crossed = false;       // local_closing: the client's close was answered
  bool broker_close_ok = false;      // local_closing: the broker has answered
  // client_closing, broker_closing: closes that were relayed and are not answered. Both, when they crossed.
  bool client_owes_close_ok = false, broker_owes_close_ok = false;
  std::optional<std::pair<uint16_t, std::string>>
      close_when_whole;  // a local close that waits for the end of a relayed publish

  bool confirm = false, tx = false;
  bool tx_dirty = false;  // tx: something since the last commit or rollback

  PublishAssembly in;
  std::deque<Release> queue;
  // Sent on the private channel, not settled: the channel's end waits for them.
  size_t hops_pending = 0, parks_pending = 0;
  // The client's channel.close stands at the end of the queue.
  bool close_waits() const {
    return !queue.empty() && queue.back().kind == Release::Kind::method &&
           proto::method_number(Bytes(queue.back().frames).subspan(proto::frame_head_bytes)) ==
               proto::method::channel_close;
  }
  ConfirmWindow confirms;
  std::deque<Sent> sent;
  uint32_t next_token = 1;
  Buffer after_publish;  // frames for the broker that wait for the end of the publish being relayed

  DeliveryAssembly out;
  Lane deliveries, returns;
  Lane& lane(DeliveryKind kind) { return kind == DeliveryKind::returned ? returns : deliveries; }
  TagWindow tags;
  // tx: what bellhop settled itself since the last commit. A rollback takes it back, so that it is said
  // again.
  struct OwnSettle {
    uint64_t tag;
    bool reject, requeue;
  };
  std::vector<OwnSettle> own_settles;
  // tx: commits and rollbacks that were sent, their answers awaited. own: bellhop's commit of own_settles.
  struct TxEnd {
    bool own;
    uint32_t number;
  };
  std::deque<TxEnd> tx_ends_awaited;
  uint32_t tx_number = 0;       // of the transaction that is open
  size_t recovers_awaited = 0;  // basic.recover sent: what is delivered before its answer is requeued
  std::unordered_map<uint64_t, config::PipelineStep> inputs;  // deliveries that came from a pipeline

  std::unordered_map<std::string, Consumer, TextHash, std::equal_to<>> consumers;
  size_t no_ack_consumers = 0;
  std::deque<Consumer> consumes_awaited;  // consume sent up without a tag, its consume-ok awaited
  std::deque<bool> cancels_awaited;       // basic.cancel sent up: the client wants its answer
  std::deque<proto::Get> gets_awaited;
  std::deque<bool> declares_awaited;  // queue.declare sent up: exclusive
  std::string last_queue;             // what an empty queue name stands for

  uint64_t backlog_bytes = 0;             // of this channel's queue and lanes, part of the session's
  uint64_t backlog_for_client_bytes = 0;  // of backlog_bytes: the lanes
};

}  // namespace bellhop
