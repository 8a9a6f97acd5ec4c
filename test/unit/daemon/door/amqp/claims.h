// Claims as the tests of their way down share them.
#pragma once

#include <string>

#include "test/unit/daemon/door/amqp/rig.h"

namespace bellhop::test {

inline const std::string key_a = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
                         key_b = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb";

// A claim for consumer "c" of channel 1.
inline Buffer claim(uint64_t tag, const std::string& key, const Buffer& fields = {}) {
  const Buffer body = claim_of(key);
  return deliver(1, "c", tag, as_text(body), fields);
}

// Nobody has it: the stores say so one after the other.
inline void is_missing(Rig& rig) {
  rig.first->say(FetchFailure::Kind::missing, "claim: not in first");
  rig.second->say(FetchFailure::Kind::missing, "claim: not in second");
  rig.turn();
}

// The first store, which may have it, cannot be asked.
inline void is_unavailable(Rig& rig) {
  rig.first->say(FetchFailure::Kind::unavailable, "no route to host");
  rig.second->say(FetchFailure::Kind::missing, "not here");
  rig.turn();
}

// What a rig needs for returned_claim, beside confirms on channel 1.
inline const char* const offloads_ten_bytes = "claim_check: { store: first, threshold: 10B }\n";

// The client publishes "0123456789" on channel 1, and its payload is stored. What the broker says when it
// returns that.
inline Buffer returned_claim(Rig& rig) {
  rig.client(publish(1, "amq.direct", "k", "0123456789", true, "id-1"));
  rig.first->store(0, "key-1");
  rig.turn();
  Buffer fields;
  put_claim_headers(fields, *rig.channel().sent.front().stored.claim(), false);
  Buffer back;
  proto::put_return(back, 1, {312, "NO_ROUTE", "amq.direct", "k"});
  put(back, header_frame(1, 8, "id-1", fields));
  put(back, body_frame(1, "\xAC\x01\x01key-1"));
  return back;
}

}  // namespace bellhop::test
