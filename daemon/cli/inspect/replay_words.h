// The words of `bellhop replay`'s command line: --to, --match, --rate. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop {

// EXCHANGE/KEY, parted at the first '/'. "/orders" is the queue `orders`, through the default exchange.
struct ReplayTarget {
  std::string exchange, routing_key;
};
Result<ReplayTarget> parse_target(std::string_view text);

// HEADER=TEXT, parted at the first '='.
struct HeaderMatch {
  std::string header, text;

  // Whether a message has the header with that text; integers are compared in decimal, booleans as true and
  // false, as a route's match does.
  bool matches(Bytes header_fields) const;
};
Result<HeaderMatch> parse_match(std::string_view text);

// N/s, at least 1/s.
Result<uint64_t> parse_rate(std::string_view text);

// So many a second, however many are done in one go.
class Pace {
 public:
  // 0: as fast as it goes.
  explicit Pace(uint64_t per_second) : per_second_(per_second) {}

  // How long to wait until the next one is due, when `done` were done since `elapsed_ms`.
  uint64_t wait_ms(uint64_t done, uint64_t elapsed_ms) const {
    if (per_second_ == 0) return 0;
    const uint64_t due_ms = done * 1000 / per_second_;
    return due_ms > elapsed_ms ? due_ms - elapsed_ms : 0;
  }
  // How many may be done in one go, so that a second's worth is spread over it.
  size_t batch_max(size_t most) const {
    if (per_second_ == 0) return most;
    const uint64_t tenth = per_second_ < 10 ? 1 : per_second_ / 10;
    return tenth < most ? static_cast<size_t>(tenth) : most;
  }

 private:
  const uint64_t per_second_;
};

}  // namespace bellhop
