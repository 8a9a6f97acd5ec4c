// A message that was taken off a queue, as somebody who looks at it wants to see it.
#pragma once

#include <optional>
#include <string>

#include "daemon/broker/incoming.h"
#include "daemon/cli/inspect/claim_report.h"
#include "proto/content_header.h"

namespace bellhop {

// Borrows from the message, which must outlive it.
class MessageView {
 public:
  explicit MessageView(const Incoming& message);

  const Incoming& message() const { return message_; }
  const proto::ContentHeader& header() const { return header_; }
  Bytes fields() const { return header_.header_fields(); }
  // A header's text as routes compare it; nothing when it is not there or of another kind.
  std::optional<std::string> text_of(std::string_view name) const;
  // How often it came back to a quorum queue already.
  int64_t delivery_count() const;
  // What to look for in the stores, when it is a claim.
  const std::optional<WantedObject>& claim() const { return claim_; }
  // The payload when the message has it itself.
  Bytes own_payload() const;
  // "message 3, message-id 8d0f...": how lines about it begin.
  std::string name(uint64_t number) const;

 private:
  const Incoming& message_;
  proto::ContentHeader header_;  // empty when it cannot be decoded
  std::optional<WantedObject> claim_;
};

// `claim` is null for a message without one. `now_s` is the epoch.
std::string in_words(const MessageView& view, uint64_t number, const ClaimReport* claim, int64_t now_s);
nlohmann::ordered_json json_of(const MessageView& view, uint64_t number, const ClaimReport* claim,
                               int64_t now_s);

}  // namespace bellhop
