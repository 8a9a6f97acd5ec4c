// A publish of the client in its three forms: while its frames arrive, as a job when it cannot be relayed as
// they come, and as what is remembered of it until the broker has said what became of it. And what a channel
// keeps of its latest one. Plain state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/door/amqp/borrowed_frame.h"
#include "daemon/door/amqp/session_memory.h"
#include "daemon/door/amqp/transfer_slots.h"
#include "daemon/message/stored_claim.h"
#include "daemon/ops/quota.h"
#include "daemon/ops/session_meter.h"
#include "daemon/snapshot/snapshot.h"
#include "proto/content_header.h"
#include "proto/method.h"

namespace bellhop {

// Exchanges that exist only in bellhop.
inline constexpr std::string_view next_exchange = "bellhop.next";
inline constexpr std::string_view route_exchange = "bellhop.route";
inline bool is_virtual_exchange(std::string_view name) {
  return name == next_exchange || name == route_exchange;
}

// To a client that waits for it (direct reply-to).
inline bool is_direct_reply(const proto::Publish& publish) {
  return publish.exchange.empty() && publish.routing_key.starts_with("amq.rabbitmq.reply-to.");
}

// A publish that cannot be relayed as its frames come: its body goes to a store, or it is a hop.
struct PublishJob {
  Buffer method, header;                     // payloads as the client sent them
  std::shared_ptr<const Snapshot> snapshot;  // that it follows; null: it was refused before that was clear
  const config::Plan* plan = nullptr;        // the snapshot's
  PublishMark mark;                          // how it is counted; a hop is not, as a publish
  bool hop = false;
  Buffer body;                     // a hop below the threshold: the payload
  std::unique_ptr<Upload> upload;  // null: the body is in `body`
  std::shared_ptr<ClaimStore> store;
  bool is_done = false;       // complete, and the upload (if any) has its outcome
  uint16_t refused_code = 0;  // done: not 0 when the publish is refused
  std::string refused_text;
  bool refusal_closes = false;  // the channel, also where confirms could say it with a nack
  StoredClaim stored;

  TransferSlot slot;    // of its upload
  QuotaShare reserved;  // of what hops may collect, until `body` is whole
  MemoryLease memory;   // pieces that the store has not taken yet, or `body`

  // Gives back what it holds but its stored payload. Aborts an upload that is under way. Again is harmless.
  void end_transfer() {
    upload.reset();
    slot.end();
    reserved = {};
    memory.end();
  }
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
  StoredClaim stored;
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
  BorrowedFrame method, header;
  // Both frames decoded, while their bytes are still borrowed.
  bool is_decoded = false;
  proto::Publish publish;
  proto::ContentHeader content;
  bool hop = false;
  uint64_t body_bytes = 0, received_bytes = 0;
  Buffer start;  // raw body frames that came before the third body byte
  std::shared_ptr<PublishJob> job;
};

// What the latest whole publish of a channel led to. Most publishers say the same method again: then nothing
// of it is decoded or looked up.
struct LastPublish {
  Buffer method;           // the raw frame
  proto::Publish publish;  // views into it
  const config::Plan* plan = nullptr;
  uint64_t generation = 0;      // of the snapshot that the plan belongs to; 0: there is none
  bool is_by_name = false;      // published to bellhop.route
  uint64_t body_bytes_end = 0;  // a body of this size or more is for a store, or above a limit
  // With these properties, and without a headers table, it is relayed as it is. Nothing: it never is.
  std::optional<uint16_t> relayed_flags;
};

}  // namespace bellhop
