// Back-pressure: which leg's frames may be handled now, and which leg is read. A leg is not read while what
// it says could not go on: full means stop reading.
#include <utility>

#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/session.h"
#include "daemon/door/amqp/undeliverable.h"

namespace bellhop {

namespace {

constexpr size_t outbox_bytes_high = 256 * 1024;   // more waits for one leg: the other is not read
constexpr uint64_t backlog_bytes_high = 16 << 20;  // more is held for the client: the broker is not read
constexpr uint64_t get_backlog_bytes_high = 4 * backlog_bytes_high;

bool is_backed_up(Link& link) {
  return link.outbox().pending() >= outbox_bytes_high;
}

}  // namespace

bool Session::client_may_advance() const {
  // A client may send its whole handshake at once: later parts wait for their turn.
  if (stage_ == Stage::handshake)
    return client_leg_ == Leg::open && !client_wants_close_ && handshake_->awaits_client();
  if (client_leg_ == Leg::close_sent || !farewell_.empty()) return true;
  return stage_ == Stage::running && client_leg_ == Leg::open && !client_wants_close_ && !stalled_ &&
         !core_->ending && (rest_deadline_ms_ == 0 || core_->client_gone) && !is_backed_up(*core_->broker) &&
         !core_->over_budget();
}

bool Session::broker_may_advance() const {
  if (broker_leg_ == Leg::close_sent && !is_client_closing()) return true;
  if (broker_leg_ == Leg::closed || broker_leg_ == Leg::none || core_->body_stream->is_streaming() ||
      is_backed_up(*core_->client))
    return false;
  // What a get's park holds up is freed only by what the broker says next, and that stands behind the
  // deliveries that it sent before.
  const uint64_t held_bytes = core_->held_for_client_bytes();
  return ((held_bytes < backlog_bytes_high && !core_->holds_too_much()) || core_->collecting != 0 ||
          (core_->undeliverable->is_parking_gets() && held_bytes < get_backlog_bytes_high)) &&
         !core_->undeliverable->is_full();
}

bool Session::is_full() const {
  auto full = [](const std::unique_ptr<Link>& link) {
    return link != nullptr && !link->is_closed() && is_backed_up(*link);
  };
  return full(core_->client) || full(core_->broker);
}

void Session::skip_broker_turn() {
  // It may not be read for another reason than the client's pace, or never again: nothing is gained by
  // waiting for it.
  if (broker_leg_ == Leg::closed ||
      (!is_backed_up(*core_->client) && core_->broker->is_paused() && !broker_may_advance()))
    core_->body_stream->broker_had_its_turn();
}

void Session::decide_reading() {
  auto set = [&](Link& link, bool wanted, Heartbeat& heartbeat) {
    if (wanted == !link.is_paused()) return;
    if (wanted) {
      link.resume_reading();
      heartbeat.resumed(core_->now_ms());
    } else {
      link.pause_reading();
    }
  };
  if (client_leg_ != Leg::closed) {
    bool waits =
        stage_ == Stage::running && client_leg_ == Leg::open && !client_wants_close_ && !client_may_advance();
    set(*core_->client, !waits, client_heartbeat_);
    if (client_leg_ == Leg::half || client_wants_close_)
      core_->client->consume(core_->client->unread().size());
  }
  if (broker_leg_ == Leg::open || broker_leg_ == Leg::close_sent) {
    set(*core_->broker, stage_ < Stage::running || broker_may_advance(), broker_heartbeat_);
    if (core_->body_stream->is_yielding() && !core_->broker->is_paused()) yield_to_broker();
  }
}

// Lets the loop look at the broker's socket once, whether it has anything to say or not: what is posted from
// posted work runs after a poll of all sockets.
void Session::yield_to_broker() {
  if (std::exchange(yield_posted_, true)) return;
  mailbox_->post([this] {
    mailbox_->post([this] {
      yield_posted_ = false;
      core_->body_stream->broker_had_its_turn();
    });
  });
}

}  // namespace bellhop
