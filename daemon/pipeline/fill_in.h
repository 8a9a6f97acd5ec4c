// What bellhop adds to a message of the client on its way to the broker, as its plan says: a message id and a
// delivery mode where it has none, and the inline prefix. Pure.
#pragma once

#include <string_view>

#include "config/routing_table.h"
#include "proto/claim_frame.h"
#include "proto/content_header.h"
#include "proto/uuid.h"

namespace bellhop {

// Notes in `edits` what a message with this header gets. Returns its message id as it is sent, a view into
// the header or into `made`; empty when it has none.
inline std::string_view fill_in(proto::HeaderEdits& edits, const config::Plan& plan,
                                const proto::ContentHeader& header, proto::UuidGenerator& uuids,
                                proto::UuidGenerator::Text& made) {
  if (!header.has(proto::delivery_mode) && plan.stamp.delivery_mode != config::DeliveryMode::keep)
    edits.delivery_mode = static_cast<uint8_t>(plan.stamp.delivery_mode);
  if (header.has(proto::message_id)) return header.text(proto::message_id);
  if (!plan.stamp.fill_message_id) return {};
  made = uuids.next();
  edits.message_id = proto::view(made);
  return edits.message_id;
}

// Whether a body that stays in its message gets the inline prefix. One that looks framed needs it, so that it
// comes back as it is; all others where the route says so. `is_direct_reply`: to a client that waits for it
// and that bellhop may not stand before.
inline bool needs_inline_prefix(const config::ClaimCheck& rule, proto::Framing framing,
                                bool is_direct_reply = false) {
  if (framing != proto::Framing::raw) return !rule.pass_already_framed;
  return rule.enabled && rule.inline_always && !is_direct_reply;
}

}  // namespace bellhop
