// Stamp: writes the method and content header frames of a publish as they go to the broker: destination,
// slip, claim, delivery mode, message id, static headers, envelope. The encoded header table is spliced: what
// bellhop does not own stays byte for byte.
#pragma once

#include <string>
#include <vector>

#include "config/routing_table.h"
#include "daemon/claims/claim_store.h"
#include "proto/content_header.h"
#include "proto/method.h"
#include "proto/uuid.h"

namespace bellhop {

struct StampInput {
  const proto::Publish& publish;  // the client's
  const proto::ContentHeader& header;
  const config::RoutingTable& routing;  // the plan's own
  const config::Plan& plan;
  const std::string& origin;     // the envelope's
  const Claim* claim = nullptr;  // the payload is in a store
  size_t framing_bytes = 0;      // 3 when AC 01 00 goes before the payload
  bool by_name = false;          // published to bellhop.route
  // Pipelines without an exchange: their steps are sent to by their queues. Null: none.
  const std::vector<std::string>* missing_exchanges = nullptr;
};

struct Stamped {
  uint16_t refused_code = 0;  // not 0: nothing was written, and refused_text says why
  std::string refused_text;
  bool as_it_is = false;  // nothing was written: relay the client's own frames
  size_t header_at = 0;   // else: where in `out` the content header's payload begins
  // As sent. Views into the input, the plan or the stamper, good until its next call.
  std::string_view exchange, routing_key, message_id;
};

// Whether a message with these header fields carries a slip already.
bool carries_slip(Bytes fields);
// The names of headers that are bellhop's own on an offloaded message (proto/README.md, "Claim headers").
bool is_claim_header(std::string_view name);
inline constexpr std::string_view claim_key_header = "bellhop-claim-key";
inline constexpr std::string_view claim_store_header = "bellhop-claim-store";
inline constexpr std::string_view claim_size_header = "bellhop-claim-size";
inline constexpr std::string_view claim_xxh128_header = "bellhop-claim-xxh128";
// The key's header comes first when the client's message had no headers table, else after the store's: so
// that a restore can give back the absent table, or the empty one.
void put_claim_headers(Buffer& out, const Claim& claim, bool had_table);
// Whether a message with claim headers had no headers table of its own. `fields` is its table now.
bool had_no_table(Bytes fields);

// One owner, one thread (the session's); hot path.
class Stamper {
 public:
  explicit Stamper(proto::UuidGenerator& uuids) : uuids_(uuids) {}
  // Appends both frames to `out`, or says that the client's own serve, or refuses (406 an unreadable slip or
  // one that leads nowhere, 311 a header that does not fit frame_bytes_max with what the route adds: its
  // slip, headers and envelope). A filled-in message id, the claim's headers and a filled-in delivery mode
  // are left out, in this order, when they do not fit.
  Stamped write(Buffer& out, uint16_t channel, const StampInput& input, size_t frame_bytes_max);

 private:
  void start_slip(const StampInput& input, Stamped& stamped);

  proto::UuidGenerator& uuids_;
  Buffer fields_;  // scratch: header fields to append
  std::string exchange_, routing_key_;
  proto::UuidGenerator::Text message_id_{};
};

}  // namespace bellhop
