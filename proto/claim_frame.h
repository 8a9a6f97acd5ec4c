// The framing of a message body that may be a claim (proto/README.md, "Claim frame"):
//
//   AC 01 00 <payload>   inline          AC 01 01 <key>   a claim: the payload is in the store under <key>
#pragma once

#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop::proto {

inline constexpr uint8_t claim_inline_prefix[3] = {0xAC, 0x01, 0x00};
inline constexpr uint8_t claim_check_prefix[3] = {0xAC, 0x01, 0x01};
inline constexpr size_t claim_prefix_bytes = 3;
inline constexpr size_t claim_key_bytes_max = 128;

enum class Framing { raw, inlined, claim };

// `start` is the body's first bytes, at least min(3, body size) of them.
Framing framing_of(Bytes start);

// Whether a key is one that bellhop or an AceMQ library issues (proto/README.md, "Keys"): a UUID, with its
// dashes or as 32 hexadecimal digits, in either case.
bool is_issued_key(std::string_view key);

// Which keys a store redeems (proto/README.md, "Keys"). any: [A-Za-z0-9][A-Za-z0-9._-]{0,127} in full, not
// ending in ".partial": what looks like a file's name, and no more.
enum class KeyRule : uint8_t { issued, any };
bool is_redeemable_key(std::string_view key, KeyRule rule);

// The error text for a key that is not allowed. It contains "is not a key this store issued" and the key,
// shortened and printable.
std::string bad_key_reason(std::string_view key);

}  // namespace bellhop::proto
