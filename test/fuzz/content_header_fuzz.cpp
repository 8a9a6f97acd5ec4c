// The content header and its rewriting. The input's first octet chooses the edits. Promised: without edits
// the same bytes come out; with edits a header that is read again, with every property that was not touched
// as it was.
#include "proto/content_header.h"

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/table.h"
#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

namespace {

constexpr size_t no_limit = 1 << 24;

bool starts_with_other_than_x(const void*, std::string_view name) {
  return !name.starts_with("x");
}

Bytes payload_of(const Buffer& frame) {
  const auto split = split_frame(frame, no_limit);
  check(split.status == Split::frame && split.frame.raw.size() == frame.size());
  return split.frame.payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const Bytes payload(data + 1, size - 1);
  const auto header = decode_content_header(payload);
  if (!header.ok()) return 0;

  Buffer same;
  check(put_content_header(same, 1, header.value(), {}, no_limit));
  check(fuzz::same(payload_of(same), payload));

  Buffer fields;
  put_envelope(fields, header.value(), {"id", "key", 1, "service@host"});
  check(table_is_well_formed(fields));
  HeaderEdits edits;
  if ((choice & 1) != 0) edits.body_bytes = 39;
  if ((choice & 2) != 0) edits.delivery_mode = 2;
  if ((choice & 4) != 0) edits.message_id = "id";
  if ((choice & 8) != 0) edits.append = fields;
  if ((choice & 16) != 0) edits.keep = starts_with_other_than_x;
  edits.drop_expiration = (choice & 32) != 0;
  edits.drop_user_id = (choice & 64) != 0;
  const bool is_well_formed = table_is_well_formed(header.value().header_fields());
  Buffer out;
  const bool is_written = put_content_header(out, 1, header.value(), edits, no_limit);
  check(is_written || (edits.keep != nullptr && !is_well_formed && out.empty()));
  if (!is_written) return 0;

  const auto again = decode_content_header(payload_of(out));
  check(again.ok());
  if (is_well_formed) check(table_is_well_formed(again.value().header_fields()));
  for (unsigned which = 0; which < property_count; ++which) {
    const auto property = static_cast<Property>(which);
    if (property == headers || (property == delivery_mode && edits.delivery_mode) ||
        (property == message_id && !edits.message_id.empty()) ||
        (property == expiration && edits.drop_expiration) || (property == user_id && edits.drop_user_id)) {
      continue;
    }
    check(again.value().has(property) == header.value().has(property));
    check(fuzz::same(again.value().property[which], header.value().property[which]));
  }
  // One byte less than it takes is refused, and leaves nothing behind.
  Buffer narrow;
  check(!put_content_header(narrow, 1, header.value(), edits, out.size() - 1) && narrow.empty());
  return 0;
}
