// Parks: sends a message that can never be delivered to its parked queue over the private channel, and says
// when it is safe there. One thread (the session's).
#pragma once

#include <functional>

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Parks {
 public:
  explicit Parks(SessionCore& core) : core_(core) {}
  // `done` is called once, with nothing when the broker has confirmed the parked message, else with why it
  // could not be parked (to be tried again later: the original is still unacknowledged).
  void park(const Delivery& delivery, const std::string& reason,
            std::function<void(std::string failure)> done);

 private:
  void post(Buffer frames, const std::string& queue, const std::string& message_id, bool declare,
            std::function<void(std::string failure)> done);

  SessionCore& core_;
};

}  // namespace bellhop
