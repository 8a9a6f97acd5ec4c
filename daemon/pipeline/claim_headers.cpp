#include "daemon/pipeline/claim_headers.h"

#include "daemon/pipeline/stamp.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr size_t claim_body_bytes_max = 65536;  // proto/README.md, "Claim frame"

}  // namespace

ClaimHeaders claim_headers_of(Bytes header_fields, std::string_view key) {
  std::string_view named_key, store, xxh128;
  std::optional<int64_t> size;
  proto::TableCursor cursor(header_fields);
  while (const auto field = cursor.next()) {
    const auto text = [&] { return proto::field_string(*field).value_or(std::string_view{}); };
    if (field->name == claim_key_header) named_key = text();
    if (field->name == claim_store_header) store = text();
    if (field->name == claim_size_header) size = proto::field_integer(*field);
    if (field->name == claim_xxh128_header) xxh128 = text();
  }
  ClaimHeaders out;
  if (named_key.empty() || named_key != key) return out;
  out.are_there = true;
  out.store = store;
  if (size && *size >= 0) out.expected.size_bytes = static_cast<uint64_t>(*size);
  if (!xxh128.empty()) out.expected.xxh128 = std::string(xxh128);
  return out;
}

std::optional<std::string> claim_key_of(Bytes body) {
  if (proto::framing_of(body) != proto::Framing::claim || body.size() > claim_body_bytes_max)
    return std::nullopt;
  return std::string(as_text(body.subspan(proto::claim_prefix_bytes)));
}

}  // namespace bellhop
