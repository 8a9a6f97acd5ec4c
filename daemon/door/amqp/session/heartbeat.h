// Heartbeat: one leg's heartbeats (specification section 4.2.7): says them when nothing else is said, and
// tells when the peer has been silent for two intervals. A leg's silence is measured only while it is read;
// any bytes count as life.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/wire/link.h"
#include "proto/frame.h"

namespace bellhop {

class Heartbeat {
 public:
  // interval_s 0: there are none.
  void start(uint16_t interval_s, uint64_t now_ms) {
    interval_s_ = interval_s;
    heard_ms_ = now_ms;
  }
  // Reading was resumed: the peer's silence counts from here. While it was not read it could not be heard.
  void resumed(uint64_t now_ms) { heard_ms_ = now_ms; }

  // Says one if it is due. `may_say`: nothing waits for the leg, and no content is half out. False: the peer
  // is gone.
  bool beat(Link& link, bool may_say, uint64_t now_ms) const {
    if (interval_s_ == 0) return true;
    if (may_say && now_ms - link.last_written_ms() >= interval_ms() / 2)
      link.outbox().append(proto::heartbeat_frame);
    return link.is_paused() || now_ms - std::max(link.last_read_ms(), heard_ms_) <= 2 * interval_ms();
  }
  uint16_t interval_s() const { return interval_s_; }
  // beat() is to come no later than this.
  uint64_t next_ms() const { return interval_s_ == 0 ? UINT64_MAX : interval_ms() / 4; }

 private:
  uint64_t interval_ms() const { return uint64_t{interval_s_} * 1000; }

  uint16_t interval_s_ = 0;
  uint64_t heard_ms_ = 0;
};

}  // namespace bellhop
