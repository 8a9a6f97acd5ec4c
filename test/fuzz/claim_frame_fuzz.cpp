// The framing of a body, and the rule for keys. Promised: a key that may be redeemed is a plain file name,
// and the reason for one that may not is short and printable.
#include "proto/claim_frame.h"

#include <algorithm>

#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes in(data, size);
  const Framing framing = framing_of(in);
  check(framing == framing_of(in.first(std::min<size_t>(size, claim_prefix_bytes))));
  if (framing != Framing::raw) check(size >= 3 && data[0] == 0xAC && data[1] == 0x01 && data[2] <= 1);

  const std::string_view key = as_text(framing == Framing::claim ? in.subspan(claim_prefix_bytes) : in);
  if (is_redeemable_key(key, KeyRule::issued)) {
    check(is_redeemable_key(key, KeyRule::any) && (key.size() == 36 || key.size() == 32));
  }
  if (is_redeemable_key(key, KeyRule::any)) {
    check(!key.empty() && key.size() <= claim_key_bytes_max && key[0] != '.' && key[0] != '-');
    check(key.find('/') == std::string_view::npos && key.find('\0') == std::string_view::npos);
  }
  const std::string reason = bad_key_reason(key);
  check(reason.size() < 400);
  check(std::all_of(reason.begin(), reason.end(), [](char c) { return c >= ' ' && c < 0x7F; }));
  return 0;
}
