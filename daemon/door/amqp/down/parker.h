// Parker: sends a message that can never be delivered to its parked queue over the private channel, and says
// when it is safe there. One thread (the session's).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemon/door/amqp/delivery.h"
#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/session_state.h"

namespace bellhop {

class PrivateChannel;

class Parker {
 public:
  // not_now: it may be tried again later. never: nothing but a change of permissions, queues or limits helps.
  enum class Outcome { parked, not_now, never };
  using Done = std::function<void(Outcome outcome, const std::string& why)>;

  // `private_channel` is null where the broker allows one channel only: then nothing can be parked.
  Parker(const SessionState& state, SessionHost& host, PrivateChannel* private_channel)
      : state_(state), host_(host), private_channel_(private_channel) {}

  // `done` is called once, later: parked when the broker has confirmed the message, else why it was not. The
  // original is not touched. An error says why it can never be parked; `done` is not called then.
  Result<void> park(const Delivery& delivery, const std::string& reason, Done done);

 private:
  const SessionState& state_;
  SessionHost& host_;
  PrivateChannel* const private_channel_;
  // Queues that the broker refused to take a message for, until when they are not tried again: each refusal
  // costs the private channel.
  std::map<std::string, uint64_t> refused_until_ms_;
};

}  // namespace bellhop
