// Takes messages off a queue one after another and keeps them unacknowledged, so that it can give them back:
// then the queue holds what it held, in its order. A stream is read from an offset, and nothing is taken off
// it. For a thread that may wait.
#pragma once

#include <string>
#include <vector>

#include "daemon/broker/control_connection.h"
#include "daemon/broker/incoming.h"

namespace bellhop {

class QueueReader {
 public:
  // `connection` must outlive it. The queue must be there.
  static Result<QueueReader> open(ControlConnection& connection, std::string queue);
  // `offset`: first, last, next, or a number. At most `messages_max` come.
  static Result<QueueReader> open_stream(ControlConnection& connection, std::string stream,
                                         const std::string& offset, uint16_t messages_max);

  // The next message; nothing when none is left. An error in the broker's words: the connection or the
  // channel is gone, and everything that was taken is back in its queue.
  Result<std::optional<Incoming>> next();
  // The next `count` messages, or those that are left: asked for in one go. Not of a stream.
  Result<std::vector<Incoming>> take(size_t count);
  // Takes it off the queue for good.
  void acknowledge(uint64_t tag);
  // Gives back all that was taken and not acknowledged; nothing can be read any more. `by_nack`: how. A
  // quorum queue of RabbitMQ 3.10 without a delivery limit puts to its end what is nacked, and to its front
  // what a closed channel leaves; one of 4.3 counts the second as a delivery, and the first not.
  void give_back_all(bool by_nack);

 private:
  QueueReader(ControlConnection& connection, std::string queue)
      : connection_(&connection), queue_(std::move(queue)) {}

  ControlConnection* connection_;
  std::string queue_;
  bool is_stream_ = false;
};

}  // namespace bellhop
