// A session's frames, from both legs: those of channel 0 are handled here, the others go to the part that
// they are for.
#include "daemon/door/amqp/session/session.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

using namespace proto;

namespace {
constexpr uint16_t access_refused = 403;
}  // namespace

bool Session::on_client_frame(const Frame& frame) {
  if (frame.channel == 0) {
    on_client_connection_frame(frame);
    return true;
  }
  if (stage_ == Stage::running) return relay_->on_client_frame(frame);
  if (stage_ == Stage::handshake)
    close_by_bellhop(503, "COMMAND_INVALID - a channel's frame before connection.open-ok", 0);
  return true;
}

void Session::on_client_connection_frame(const Frame& frame) {
  if (frame.type == frame_heartbeat) return;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_close_ok) {
    if (client_leg_ == Leg::close_sent) end_client_leg();
    return;
  }
  if (number == method::connection_close) {
    if (client_leg_ == Leg::close_sent || !farewell_.empty()) {
      Buffer& out = farewell_.empty() ? client_->outbox().tail() : farewell_;
      put_empty_method(out, method::connection_close_ok, 0);
    } else {
      client_wants_close_ = true;
      end_reason_ = "closed by the client";
    }
    return;
  }
  if (client_leg_ != Leg::open || !farewell_.empty()) return;
  if (frame.type != frame_method) {
    close_by_bellhop(505, "UNEXPECTED_FRAME - a content frame on channel 0", 0);
    return;
  }
  if (frame.payload.size() < 4) {
    close_by_bellhop(501, "FRAME_ERROR - a method frame without a method", 0);
    return;
  }
  if (stage_ == Stage::handshake) {
    handshake_->on_client(frame);
    return;
  }
  if (number == method::connection_update_secret) {
    if (!handshake_->passed_login_on()) {
      // The client's secret is not what bellhop logged in with.
      put_empty_method(relay_->own_frames(), method::connection_update_secret_ok, 0);
    } else {
      broker_->outbox().borrow(frame.raw);
    }
    return;
  }
  // RabbitMQ's own answer to what does not belong on channel 0 once the connection is open.
  close_by_bellhop(504, "CHANNEL_ERROR - unexpected method in connection state running", number);
}

bool Session::on_broker_frame(const Frame& frame) {
  if (frame.channel == 0) {
    on_broker_connection_frame(frame);
    return true;
  }
  if (stage_ < Stage::running || frame.type == frame_heartbeat) return false;
  if (broker_leg_ == Leg::close_sent && !is_client_closing()) return true;
  if (relay_ == nullptr) return true;
  if (frame.channel == state_.private_channel_id) return relay_->on_private_frame(frame);
  if (state_.ending && client_leg_ != Leg::open) return true;  // nothing stands behind a connection.close
  // An answer. The client library must not read it together with the close.
  if (rest_deadline_ms_ != 0 && frame.type == frame_method &&
      method_number(frame.payload) != method::basic_deliver)
    set_deadline(rest_deadline_ms_, rest_ms);
  return relay_->on_broker_frame(frame);
}

void Session::on_broker_connection_frame(const Frame& frame) {
  if (frame.type == frame_heartbeat) return;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_close_ok) {
    end_broker_leg();  // the client's answer: answer_client_close()
    return;
  }
  if (number == method::connection_close) {
    auto close = decode_close(frame.payload);
    end_reason_ =
        "closed by the broker: " + (close ? std::string(close.value().reply_text) : std::string("?"));
    if (close && close.value().reply_code == access_refused && stage_ == Stage::handshake &&
        state_.has_own_login)
      end_reason_ += " (bellhop logged in as user '" + state_.broker_user +
                     "': check the credentials under broker in its configuration)";
    state_.meter.ends(SessionEnd::broker_closed);
    tell_trouble("session closed", subject_of_reason(end_reason_), "session closed by the broker",
                 about({{"reason", end_reason_}}));
    put_empty_method(broker_->outbox().tail(), method::connection_close_ok, 0);
    stage_ = Stage::ending;
    state_.ending = true;
    if (client_leg_ == Leg::open) tell_client(Buffer(frame.raw.begin(), frame.raw.end()));
    broker_->flush();
    end_broker_leg();
    return;
  }
  if (broker_leg_ == Leg::close_sent) return;
  if (stage_ == Stage::handshake) {
    handshake_->on_broker(frame);
    if (handshake_->is_done()) handshake_done();
    return;
  }
  if (number == method::connection_blocked || number == method::connection_unblocked)
    state_.meter.blocked = number == method::connection_blocked;
  // connection.blocked, connection.unblocked, update-secret-ok go to the client.
  if (relay_ != nullptr) put(relay_->own_frames(), frame.raw);
}

}  // namespace bellhop
