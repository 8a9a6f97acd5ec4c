// A declared slip out of a headers table. Promised: what is read is written so that it is read the same, at
// every step to the end.
#include "proto/routing_slip.h"

#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto slip = RoutingSlip::from(Bytes(data, size), "fresh");
  if (!slip) return 0;
  check(!slip->steps().empty() && !slip->run_id().empty());
  for (int hop = 0; hop < 4; ++hop) {
    check(slip->current().has_value() == !slip->is_finished());
    if (slip->next()) check(slip->current().has_value());
    Buffer out;
    slip->to_headers(out);
    const auto again = RoutingSlip::from(out, "other");
    check(again.has_value());
    check(again->steps() == slip->steps() && again->run_id() == slip->run_id());
    check(again->is_finished() == slip->is_finished());
    if (!slip->is_finished()) check(again->position() == slip->position());
    slip->advance();
  }
  return 0;
}
