// Releaser: keeps each channel's order. What the client sent on a channel goes to the broker in that order: a
// publish whose body is still on its way to a store holds back every later method of its channel
// (ARCHITECTURE.md, "Order survives concurrency"). One thread (the session's).
#pragma once

#include "daemon/door/amqp/session_core.h"

namespace bellhop {

class Releaser {
 public:
  explicit Releaser(SessionCore& core) : core_(core) {}

  // A method of the client that is no publish: applied and relayed at once, or after what it stands behind.
  void method(Channel& channel, const proto::Frame& frame);
  // Puts a job or a publish behind what is there; pump() does the rest.
  Release& enqueue(Channel& channel, Release release);
  // Releases what is ready at the front.
  void pump(Channel& channel);

  // A publish was written to the broker on the client's channel. Gives `sent` (null: nothing to remember) its
  // tags.
  void published(Channel& channel, std::unique_ptr<Sent> sent);
  // A publish is refused by bellhop: a nack for exactly its tag, or the channel's close.
  // `subject` is what the trouble is about (ops/trouble.h), when that is less than the text.
  void refuse(Channel& channel, const PublishJob& job, uint16_t code, const std::string& text,
              bool closes = false, const std::string& subject = {});
  void write_answers(Channel& channel, const std::vector<ConfirmWindow::Answer>& answers);

  // No channel has anything that waits.
  bool is_idle() const;

 private:
  void apply(Channel& channel, const proto::Frame& frame, bool borrowed);
  void release_job(Channel& channel, PublishJob& job);
  void end_transaction(Channel& channel, bool committed);
  bool settle(Channel& channel, const proto::Frame& frame, uint32_t number);
  bool answer_virtual_exchange(Channel& channel, const proto::Frame& frame, uint32_t number);
  void cancel(Channel& channel, const proto::Frame& frame);
  void consume(Channel& channel, const proto::Frame& frame);
  bool get(Channel& channel, const proto::Frame& frame);
  void declare(Channel& channel, const proto::Frame& frame);

  SessionCore& core_;
  std::vector<ConfirmWindow::Answer> answers_;
};

inline constexpr std::string_view next_exchange = "bellhop.next";
inline constexpr std::string_view route_exchange = "bellhop.route";
inline bool is_virtual_exchange(std::string_view name) {
  return name == next_exchange || name == route_exchange;
}

}  // namespace bellhop
