// OwnSettles: the acknowledgements and rejects that bellhop says of its own accord, of tags that the client
// was never given (or gave up on): what was parked, what a hop consumed, what a gone consumer was not handed.
//
// On a tx channel nobody may ever commit them: bellhop does, unless the client's transaction is open; a
// rollback takes them back, so that they are said again.
//
// One thread (the session's).
#pragma once

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class OwnSettles {
 public:
  explicit OwnSettles(SessionCore& core) : core_(core) {}

  // Settles a tag that is bellhop's own.
  void settle(Channel& channel, uint64_t tag, bool reject = false, bool requeue = false);
  // tx: what a rollback of the client took back.
  void say_again(Channel& channel);

 private:
  void commit(Channel& channel);

  SessionCore& core_;
};

}  // namespace bellhop
