#include "daemon/door/amqp/consumers.h"

#include <utility>

namespace bellhop {

void Consumers::put(std::string_view tag, Consumer consumer) {
  Known& known = known_[std::string(tag)];
  if (known.consumer.no_ack) no_ack_--;
  if (consumer.no_ack) no_ack_++;
  known.consumer = std::move(consumer);
  known.is_cancelled = false;
}

void Consumers::ask(std::string_view tag, Consumer consumer, bool is_answered) {
  std::optional<Consumer> unnamed;
  if (tag.empty()) {
    unnamed = std::move(consumer);
  } else {
    put(tag, std::move(consumer));
  }
  if (is_answered) asked_.push_back(std::move(unnamed));
}

void Consumers::accept(std::string_view tag) {
  if (asked_.empty()) return;
  std::optional<Consumer> unnamed = std::move(asked_.front());
  asked_.pop_front();
  if (unnamed) put(tag, std::move(*unnamed));
}

void Consumers::cancel(std::string_view tag, bool is_wanted) {
  cancels_wanted_.push_back(is_wanted);
  auto found = known_.find(tag);
  if (found == known_.end()) return;
  found->second.cancels_awaited++;
  found->second.is_cancelled = true;
}

bool Consumers::end(std::string_view tag, bool is_asked) {
  bool is_wanted = true;
  if (is_asked && !cancels_wanted_.empty()) {
    is_wanted = cancels_wanted_.front();
    cancels_wanted_.pop_front();
  }
  auto found = known_.find(tag);
  if (found == known_.end()) return is_wanted;
  Known& known = found->second;
  if (is_asked && known.cancels_awaited != 0) known.cancels_awaited--;
  if (!is_asked || known.is_cancelled) {
    if (known.consumer.no_ack) no_ack_--;
    known_.erase(found);
  }
  return is_wanted;
}

void Consumers::find_inputs(const config::RoutingTable& routing) {
  const auto find = [&routing](Consumer& consumer) {
    consumer.input = routing.step_of_queue(consumer.queue);
  };
  for (auto& [tag, known] : known_) find(known.consumer);
  for (std::optional<Consumer>& each : asked_) {
    if (each) find(*each);
  }
}

const Consumer* Consumers::find(std::string_view tag) const {
  auto found = known_.find(tag);
  return found == known_.end() ? nullptr : &found->second.consumer;
}

}  // namespace bellhop
