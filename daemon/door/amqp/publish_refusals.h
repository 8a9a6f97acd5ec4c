// PublishRefusals: how bellhop says no to a publish: a nack for exactly its tag, or the channel's close.
// One thread (the session's).
#pragma once

#include <string>

#include "daemon/door/amqp/closing.h"
#include "daemon/door/amqp/publish_tracker.h"

namespace bellhop {

class PublishRefusals {
 public:
  PublishRefusals(const SessionState& state, PublishTracker& tracker, Closing& closing)
      : state_(state), tracker_(tracker), closing_(closing) {}

  // `closes`: the channel, also where confirms could say it with a nack.
  void refuse(Channel& channel, const PublishJob& job, uint16_t code, const std::string& text,
              bool closes = false);

 private:
  const SessionState& state_;
  PublishTracker& tracker_;
  Closing& closing_;
};

}  // namespace bellhop
