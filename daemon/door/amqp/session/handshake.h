// Handshake: the interleaved opening of both legs (ARCHITECTURE.md, "The handshake is interleaved"). Server
// and client properties pass verbatim; credentials are replaced when the configuration has some, or has a
// client certificate and the broker offers SASL EXTERNAL; tune is adjusted so that bellhop keeps one channel
// for itself, and the broker's leg has the broker's frame_max whatever the client chooses.
//
//   broker            bellhop             client
//     start ─────────────────────────────► start
//     start-ok ◄──── credentials ───────── start-ok
//     tune ───────── channel_max − 1 ────► tune
//     tune-ok ◄───── channel_max + 1 ───── tune-ok
//     open ◄──────── vhost mapped ──────── open
//     open-ok ───────────────────────────► open-ok
//
// One thread (the session's).
#pragma once

#include <string>

#include "daemon/door/amqp/session_host.h"
#include "daemon/door/amqp/session_state.h"
#include "daemon/wire/outbox.h"
#include "proto/method.h"

namespace bellhop {

class Handshake {
 public:
  // `tcp` is null for a client of a Unix socket. All outlive the handshake.
  Handshake(SessionState& state, SessionHost& host, Outbox& to_client, Outbox& to_broker,
            const config::BrokerUrl& url, const config::TcpListen* tcp)
      : state_(state), host_(host), to_client_(to_client), to_broker_(to_broker), url_(url), tcp_(tcp) {}

  // Frames of channel 0 but for connection.close and close-ok, which the session handles. A wrong one closes
  // the connection.
  void on_client(const proto::Frame& frame);
  void on_broker(const proto::Frame& frame);

  // The next step is the client's. What it sends earlier is to wait.
  bool awaits_client() const {
    return step_ == Step::start_ok || step_ == Step::tune_ok || step_ == Step::open || challenged_;
  }
  // The broker said its start, and the client has it: from here on this broker is the client's.
  bool has_begun() const { return step_ != Step::start; }
  bool is_done() const { return step_ == Step::done; }
  // The client's own credentials went to the broker.
  bool passed_login_on() const { return passes_on_; }
  uint16_t client_heartbeat_s() const { return client_heartbeat_s_; }
  uint16_t broker_heartbeat_s() const { return broker_heartbeat_s_; }
  const std::string& vhost() const { return vhost_; }
  const std::string& client_user() const { return client_user_; }

 private:
  enum class Step { start, start_ok, tune, tune_ok, open, open_ok, done };

  void on_start_ok(const proto::Frame& frame);
  void log_in(proto::StartOk& start_ok, const std::string& mechanism, const std::string& response);
  bool offers(const std::string& mechanism) const;
  bool check_client(const proto::StartOk& start_ok);
  void on_tune(const proto::Tune& offered);
  void on_tune_ok(const proto::Tune& chosen);
  void on_open(const proto::Frame& frame);
  void unexpected(const proto::Frame& frame, const char* from);

  SessionState& state_;
  SessionHost& host_;
  Outbox& to_client_;
  Outbox& to_broker_;
  const config::BrokerUrl& url_;
  const config::TcpListen* tcp_;
  Step step_ = Step::start;
  bool challenged_ = false;  // connection.secure went down, secure-ok is awaited
  std::string mechanisms_;   // the broker's, with a blank between two
  bool passes_on_ = false;
  proto::Tune offered_;  // to the client
  uint16_t broker_heartbeat_offer_s_ = 0;
  uint16_t client_heartbeat_s_ = 0, broker_heartbeat_s_ = 0;
  std::string vhost_, client_user_;
};

// The user and password of a PLAIN or AMQPLAIN response; empty where there is none.
struct Login {
  std::string user, password;
};
Login login_of(const std::string& mechanism, const std::string& response);

}  // namespace bellhop
