// The ways a session ends. Each leg ends for itself (Session::Leg); what was taken from the client still goes
// up. Every end passes check_ends(), and the last one finish().
//
//   the client closes ──► what it sent is settled ──► the broker is told, its close-ok goes down
//   the client is gone ─► the same, for linger_ms at most
//   the broker is gone, bellhop's own decision, drain ─► connection.close goes down, its close-ok is awaited
#include <algorithm>
#include <utility>

#include "daemon/door/amqp/session/session.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

using namespace proto;

namespace {

constexpr uint64_t close_wait_ms = 5000;     // for a close-ok
constexpr uint64_t farewell_wait_ms = 5000;  // for returns that are being restored, before a connection.close
constexpr uint64_t drain_wait_ms = 1000;     // for an answer while draining: the process waits with it
constexpr uint64_t linger_ms = 5000;         // for a gone client's complete publishes
constexpr uint64_t peer_end_wait_ms = 2000;  // for the end of a socket whose writes we shut

}  // namespace

void Session::leg_ended(Link& link, const std::string& reason) {
  if (&link == client_.get()) {
    if (end_reason_.empty()) {
      end_reason_ = "client: " + reason;
      state_.meter.ends(SessionEnd::client_lost);
    }
    if (client_leg_ != Leg::open || stage_ < Stage::running) {
      end_client_leg();
    } else {
      client_vanished();
    }
    return;
  }
  broker_ended(reason);
}

// The client's socket is dead. What it sent whole still goes up.
void Session::client_vanished() {
  state_.client_gone = true;
  set_deadline(linger_deadline_ms_, linger_ms);
}

// How long an answer to the end is waited for. A drain has no time for a client that never answers.
uint64_t Session::last_wait_ms(uint64_t usual_ms) const {
  if (stop_within_ms_ != 0) return std::min(usual_ms, std::max<uint64_t>(stop_within_ms_ / 3, 1));
  return told_to_drain_ ? std::min(usual_ms, drain_wait_ms) : usual_ms;
}

bool Session::owes_content() const {
  return relay_ != nullptr && relay_->owes_content(broker_leg_ != Leg::closed);
}

// A connection.close goes down, behind the content that is half out and the returns that the client has not
// been handed yet.
void Session::tell_client(Buffer connection_close) {
  farewell_ = std::move(connection_close);
  state_.closing = state_.draining = true;
  if (owes_content()) {
    set_deadline(farewell_deadline_ms_,
                 stop_within_ms_ != 0 ? last_wait_ms(farewell_wait_ms) : farewell_wait_ms);
  } else {
    say_farewell();
  }
}

void Session::say_farewell() {
  const Buffer farewell = std::exchange(farewell_, {});
  farewell_deadline_ms_ = 0;
  if (is_half_out()) {
    // Nothing can be said inside a content that will never be whole.
    end_client_leg();
    return;
  }
  client_->outbox().append(farewell);
  client_leg_ = Leg::close_sent;
  set_deadline(client_deadline_ms_, last_wait_ms(close_wait_ms));
}

// The broker's answer to the client's connection.close came, or never will. So does the client's, behind the
// returns.
void Session::answer_client_close() {
  if (owes_content()) return;
  if (is_half_out()) {
    end_client_leg();
    return;
  }
  put_empty_method(client_->outbox().tail(), method::connection_close_ok, 0);
  wait_for_client_end();
}

void Session::close_by_bellhop(uint16_t code, const std::string& text, uint32_t method) {
  if (stage_ == Stage::ending || finished_) return;
  stage_ = Stage::ending;
  state_.ending = true;
  end_reason_ = text;
  state_.meter.ends(code == 320   ? SessionEnd::drained
                    : code == 541 ? SessionEnd::internal
                                  : SessionEnd::protocol);
  if (broker_leg_ == Leg::open) {
    // What no_ack consumers were not handed is parked before the broker is told that this is the end.
    if (relay_ != nullptr) relay_->park_all_unhanded();
    // After stop() the parks get only the time that is left.
    set_deadline(linger_deadline_ms_, stop_within_ms_ != 0 ? last_wait_ms(linger_ms) : linger_ms);
  }
  // A drained session ends as intended: no trouble.
  if (told_to_drain_ && code == 320) {
    log_info("session closed by bellhop", about({{"code", code}, {"reason", text}}));
  } else {
    tell_trouble("session closed", subject_of_reason(text), "session closed by bellhop",
                 about({{"code", code}, {"reason", text}}));
  }
  if (client_leg_ == Leg::open && !state_.client_gone) {
    Buffer frame;
    put_close(frame, method::connection_close, 0,
              {code, text, static_cast<uint16_t>(method >> 16), static_cast<uint16_t>(method)});
    tell_client(std::move(frame));
  } else if (state_.client_gone) {
    end_client_leg();
  }
}

void Session::broker_ended(const std::string& reason) {
  bool expected = broker_leg_ == Leg::close_sent || stage_ == Stage::ending;
  bool handshaking = stage_ == Stage::handshake;
  end_broker_leg();
  // After a close of the client's, it gets its answer all the same.
  if (expected) return;
  if (handshaking) {
    // As the broker itself does towards a client without authentication_failure_close.
    end_unserved("the broker ended the connection during the handshake: " + reason);
    tell_trouble("session ended", subject_of_reason(end_reason_), "session ended",
                 about({{"reason", end_reason_}}));
    return;
  }
  close_by_bellhop(320, "CONNECTION_FORCED - the broker connection was lost: " + reason, 0);
  state_.meter.ends(SessionEnd::broker_lost);
  shared_.meter->saw_broker(false);
}

void Session::wait_for_client_end() {
  if (client_leg_ == Leg::closed) return;
  if (!farewell_.empty()) say_farewell();
  if (client_leg_ == Leg::closed) return;
  client_leg_ = Leg::half;
  leaving_.store(true, std::memory_order_relaxed);  // before the client can read it
  client_->shut_down_writes();
  set_deadline(client_deadline_ms_, last_wait_ms(peer_end_wait_ms));
}

void Session::end_client_leg() {
  if (client_leg_ == Leg::closed) return;
  client_leg_ = Leg::closed;
  client_deadline_ms_ = 0;
  // What was borrowed from this link's buffer goes before the buffer does.
  if (broker_ != nullptr && broker_leg_ != Leg::closed) broker_->outbox().own();
  if (relay_ != nullptr) relay_->detach_client_frames();
  if (!state_.client_gone) client_->flush();
  state_.client_gone = true;
  client_->close({});
}

void Session::end_broker_leg() {
  if (broker_leg_ == Leg::closed || broker_leg_ == Leg::none) return;
  broker_leg_ = Leg::closed;
  state_.meter.at_broker = state_.meter.blocked = false;
  broker_deadline_ms_ = 0;
  client_->outbox().own();
  if (relay_ != nullptr) relay_->detach_broker_frames();
  broker_->close({});
}

void Session::close_broker_leg() {
  if (broker_leg_ != Leg::open) return;
  if (handshake_ == nullptr || !handshake_->is_done()) {
    end_broker_leg();
    return;
  }
  // An answered close is the proof that the broker has read all that went before.
  put_close(broker_->outbox().tail(), method::connection_close, 0, {200, "Goodbye", 0, 0});
  broker_->flush();
  broker_leg_ = Leg::close_sent;
  set_deadline(broker_deadline_ms_, last_wait_ms(close_wait_ms));
}

bool Session::is_settled() const {
  return relay_ == nullptr || relay_->is_settled();
}

// A drain has begun, or its time is over: deadlines get shorter.
void Session::hurry() {
  for (uint64_t* deadline : {&client_deadline_ms_, &broker_deadline_ms_}) {
    if (*deadline != 0 && stage_ == Stage::ending)
      set_deadline(*deadline,
                   std::min(last_wait_ms(close_wait_ms), *deadline - std::min(*deadline, now_ms())));
  }
}

void Session::note_unsettled() {
  unconfirmed_.store(relay_->unconfirmed(), std::memory_order_relaxed);
  unacknowledged_.store(relay_->unacknowledged(), std::memory_order_relaxed);
}

// While draining. The close comes a rest after the session has nothing unsettled any more. Meanwhile nothing
// is taken from the client: what it sends then was not accepted, and the close says so truly.
void Session::end_drained() {
  if (!relay_->is_drained()) {
    rest_deadline_ms_ = 0;
  } else if (rest_deadline_ms_ == 0) {
    set_deadline(rest_deadline_ms_, rest_ms);
  } else if (now_ms() >= rest_deadline_ms_) {
    close_by_bellhop(320, "CONNECTION_FORCED - bellhop is shutting down", 0);
    client_->flush();
  }
}

// The client is gone, but what it sent is not all handled yet. Not before this turn's flush: it reads.
bool Session::has_more_of_client() {
  if (last_frames_done_) return false;
  Bytes unread = client_->unread();
  return split_frame(unread, state_.frame_bytes_max).status != Split::need_more || client_->read_rest();
}

// Nothing more comes from the client. What it sent whole goes on; what is half sent never will be whole.
void Session::end_of_client_frames() {
  if (std::exchange(last_frames_done_, true)) return;
  if (relay_ != nullptr) relay_->end_of_client_frames();
}

// Acts on deadlines and ends that this turn made due. Every end of a session passes here.
void Session::check_ends() {
  uint64_t now = now_ms();
  auto due = [&](uint64_t deadline) { return deadline != 0 && now >= deadline; };

  if (stage_ == Stage::running && told_to_drain_) {
    note_unsettled();
    if (!state_.client_gone && !client_wants_close_) end_drained();
  }
  if (stage_ <= Stage::running && client_wants_close_ && !close_relayed_ && client_leg_ == Leg::open) {
    end_of_client_frames();
    if (is_settled()) {
      close_relayed_ = true;
      state_.closing = state_.draining = true;
      close_broker_leg();
      if (broker_leg_ != Leg::close_sent) {
        // During the handshake: the broker has nothing to say about it.
        put_empty_method(client_->outbox().tail(), method::connection_close_ok, 0);
        wait_for_client_end();
        stage_ = Stage::ending;
      }
    }
  }
  if (stage_ == Stage::running && state_.client_gone && client_leg_ != Leg::closed) {
    if (client_may_advance() && has_more_of_client()) {
      schedule_tick(0);  // a turn for it
    } else if (client_may_advance()) {
      end_of_client_frames();
      relay_->cancel_stream();
      state_.draining = true;
    }
    if ((last_frames_done_ && is_settled()) || due(linger_deadline_ms_)) {
      stage_ = Stage::ending;
      state_.ending = true;
      end_client_leg();
    }
  }
  if (due(client_deadline_ms_)) {
    if (stage_ < Stage::running) {
      end_reason_ = "the handshake took longer than limits.handshake_timeout";
      state_.meter.ends(SessionEnd::refused);
      tell_trouble("session ended", subject_of_reason(end_reason_), "session ended",
                   about({{"reason", end_reason_}}));
    }
    end_client_leg();
  }
  if (due(broker_deadline_ms_)) end_broker_leg();
  if (is_client_closing() && farewell_.empty() && broker_leg_ == Leg::closed) answer_client_close();
  if (!farewell_.empty() && client_leg_ == Leg::open && (!owes_content() || due(farewell_deadline_ms_))) {
    say_farewell();
    client_->flush();
  }

  bool parks =
      broker_leg_ == Leg::open && relay_ != nullptr && relay_->is_parking() && !due(linger_deadline_ms_);
  if (stage_ == Stage::ending && state_.ending && !abandoned_ && !parks &&
      (farewell_.empty() || client_leg_ != Leg::open)) {
    abandoned_ = true;
    if (relay_ != nullptr) relay_->abandon();
    close_broker_leg();
  }
  if (client_leg_ == Leg::closed && broker_leg_ == Leg::open && !parks) close_broker_leg();
  if (client_leg_ == Leg::closed && (broker_leg_ == Leg::closed || broker_leg_ == Leg::none)) finish();
}

void Session::finish() {
  if (finished_) return;
  finished_ = true;
  log_info("session closed", about({{"reason", end_reason_}}));
  connector_.reset();
  if (!client_->is_closed()) client_->close({});
  if (broker_ != nullptr && !broker_->is_closed()) broker_->close({});
  mailbox_->close();
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
}

}  // namespace bellhop
