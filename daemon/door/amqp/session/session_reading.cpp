// Back-pressure: which leg's frames may be handled now, and which leg is read. A leg is not read while what
// it says could not go on: full means stop reading.
#include <utility>

#include "daemon/door/amqp/session/session.h"

namespace bellhop {

namespace {

constexpr size_t outbox_bytes_high = 256 * 1024;  // more waits for one leg: the other is not read

bool is_backed_up(Link& link) {
  return link.outbox().pending() >= outbox_bytes_high;
}

}  // namespace

bool Session::client_may_advance() const {
  if (stage_ == Stage::running && client_leg_ == Leg::open && farewell_.empty())
    return !client_wants_close_ && !stalled_ && !state_.ending &&
           (rest_deadline_ms_ == 0 || state_.client_gone) && !is_backed_up(*broker_) &&
           !memory_.over_budget();
  // A client may send its whole handshake at once: later parts wait for their turn.
  if (stage_ == Stage::handshake)
    return client_leg_ == Leg::open && !client_wants_close_ && handshake_->awaits_client();
  return client_leg_ == Leg::close_sent || !farewell_.empty();
}

bool Session::broker_may_advance() const {
  if (broker_leg_ != Leg::open) {
    if (broker_leg_ != Leg::close_sent) return false;
    if (!is_client_closing()) return true;
  }
  return !is_backed_up(*client_) && (relay_ == nullptr || relay_->has_room_for_deliveries());
}

bool Session::is_full() const {
  auto full = [](const std::unique_ptr<Link>& link) {
    return link != nullptr && !link->is_closed() && is_backed_up(*link);
  };
  return full(client_) || full(broker_);
}

void Session::skip_broker_turn() {
  if (relay_ == nullptr) return;
  // It may not be read for another reason than the client's pace, or never again: nothing is gained by
  // waiting for it.
  if (broker_leg_ == Leg::closed ||
      (!is_backed_up(*client_) && broker_->is_paused() && !broker_may_advance()))
    relay_->broker_had_its_turn();
}

void Session::decide_reading() {
  auto set = [&](Link& link, bool wanted, Heartbeat& heartbeat) {
    if (wanted == !link.is_paused()) return;
    if (wanted) {
      link.resume_reading();
      heartbeat.resumed(now_ms());
    } else {
      link.pause_reading();
    }
  };
  if (client_leg_ != Leg::closed) {
    bool waits =
        stage_ == Stage::running && client_leg_ == Leg::open && !client_wants_close_ && !client_may_advance();
    set(*client_, !waits, client_heartbeat_);
    if (client_leg_ == Leg::half || client_wants_close_) client_->consume(client_->unread().size());
  }
  if (broker_leg_ == Leg::open || broker_leg_ == Leg::close_sent) {
    set(*broker_, stage_ < Stage::running || broker_may_advance(), broker_heartbeat_);
  }
  if (relay_ != nullptr && relay_->is_yielding()) yield_to_broker();
}

// Lets the loop look at the broker's socket once, whether it has anything to say or not: what is posted from
// posted work runs after a poll of all sockets.
void Session::yield_to_broker() {
  if (std::exchange(yield_posted_, true)) return;
  mailbox_->post([this] {
    mailbox_->post([this] {
      yield_posted_ = false;
      relay_->broker_had_its_turn();
    });
  });
}

}  // namespace bellhop
