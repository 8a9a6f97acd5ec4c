// The AceMQ envelope headers (proto/README.md, "Envelope"). bellhop writes them on a publish whose route says
// so, and keeps each header that the app has set.
#pragma once

#include <string_view>

#include "proto/bytes.h"
#include "proto/content_header.h"

namespace bellhop::proto {

struct EnvelopeFacts {
  std::string_view message_id;   // after filling; empty when there is none and none is filled
  std::string_view routing_key;  // the app's
  int64_t now_ms = 0;            // epoch
  std::string_view origin;       // <service>@<host>
};

// Appends the encoded fields that neither `header` nor `out` has yet. An absent value gives no field, never
// an empty one.
void put_envelope(Buffer& out, const ContentHeader& header, const EnvelopeFacts& facts);

}  // namespace bellhop::proto
