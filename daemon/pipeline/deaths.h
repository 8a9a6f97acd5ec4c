// How often, where and why a message died: the header x-death, in which RabbitMQ counts dead-letterings, the
// newest first. And how often it came back: x-delivery-count. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/bytes.h"

namespace bellhop {

struct Death {
  std::string queue, reason;  // rejected, expired, maxlen, delivery_limit
  int64_t count = 1;
  std::string exchange;  // to which it was published before
  std::vector<std::string> routing_keys;
  int64_t first_at_s = 0;  // epoch; 0: not said
};

// What cannot be read is left out.
std::vector<Death> deaths_of(Bytes header_fields);
// How often the message came back to its quorum queue already. 0: other queues do not count.
int64_t delivery_count_of(Bytes header_fields);

}  // namespace bellhop
