// Session: one client connection, with a thread, a loop and a broker connection of its own (ARCHITECTURE.md,
// "One session, one thread, one loop"). Drives greeting, handshake, the relay of frames in both directions,
// back-pressure, heartbeats and the ways a connection ends.
//
//   greeting ─► connecting ─► handshake ─► running ─► ending ─► (thread ends)
//
// Every event of the loop (bytes read, posted work, time) is followed by one turn: all whole frames are
// handled, each leg is flushed once, and what may be read next is decided. Everything a session owns is
// touched by its thread alone.
#pragma once

#include <uv.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/broker/connector.h"
#include "daemon/door/amqp/session/accepted.h"
#include "daemon/door/amqp/session/handshake.h"
#include "daemon/door/amqp/session/heartbeat.h"
#include "daemon/door/amqp/session/relay.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/mailbox.h"
#include "daemon/wire/link.h"

namespace bellhop {

class Session final : public LinkOwner, public SessionHost {
 public:
  // Main thread. Takes the descriptor. `shared` outlives the session. `refusal`, when not empty, is what the
  // client is told instead of being served. `ended` is called once, from the session's thread, as its last
  // act: the session is then to be destroyed (which joins).
  Session(Shared& shared, Accepted accepted, uint64_t id, std::string refusal,
          std::function<void(uint64_t id)> ended);
  ~Session();
  // Main thread, once, before anything else. Starts the session's thread. An error (descriptors, threads or
  // memory have run out) means that there is no session: it is only to be destroyed, and `ended` is not
  // called.
  Result<void> start();

  // Any thread. Makes a turn, which begins with that.
  void look_at_configuration();
  // Any thread. Ends once nothing is unsettled.
  void drain();
  // Any thread. Ends now, politely: connection.close 320, and a third of `within_ms` for its answer. The log
  // names what is still unsettled.
  void stop(std::string why, uint64_t within_ms);
  // Any thread. While draining: who is not ready, and what it waits for, as of its last turn.
  LogFields what_is_unsettled() const;
  static constexpr const char* not_ended_in_time = "session has not ended in time";

  // Between the last confirm or other answer of a drained session and its close. A client library that reads
  // both at once may take a confirmed publish for failed.
  static constexpr uint64_t rest_ms = 100;

  bool is_tcp() const { return tcp_ != nullptr; }
  // Any thread. The client was told its connection's end, and may be back already.
  bool is_leaving() const { return leaving_.load(std::memory_order_relaxed); }

 private:
  enum class Stage { greeting, connecting, handshake, running, ending };
  enum class Leg {
    none,
    open,
    close_sent,
    half,
    closed
  };  // half: our writes are shut, the peer's end is awaited

  void on_bytes(Link& link) override;
  void on_writable_again(Link& link) override;
  void on_end(Link& link, std::string reason) override;
  uint64_t now_ms() const override { return uv_now(&loop_); }
  void wake_within(uint64_t ms) override { schedule_tick(ms); }
  void close_connection(uint16_t code, const std::string& text, uint32_t method) override {
    close_by_bellhop(code, text, method);
  }

  // session.cpp
  LogFields about(std::initializer_list<LogField> more = {}) const;  // for a log
  Result<void> open_loop();
  void run();
  void turn();
  bool may_pump() const;
  bool pump_relay();
  bool run_client();
  bool run_broker();

  // session_opening.cpp
  void greet();
  void connected(Result<Connected> result);
  void handshake_done();
  void end_unserved(std::string reason);

  // session_frames.cpp
  bool on_client_frame(const proto::Frame& frame);  // false: it waits for a transfer to end
  void on_client_connection_frame(const proto::Frame& frame);
  bool on_broker_frame(const proto::Frame& frame);  // false: the broker broke the protocol
  void on_broker_connection_frame(const proto::Frame& frame);

  // session_reading.cpp
  bool is_full() const;  // a leg's outbox holds so much that the other leg is not read
  bool client_may_advance() const;
  bool broker_may_advance() const;
  void decide_reading();
  void skip_broker_turn();
  void yield_to_broker();

  // session_time.cpp
  void schedule_tick(uint64_t after_ms);
  void set_deadline(uint64_t& deadline_ms, uint64_t after_ms);
  void tick();
  void beat(uint64_t now_ms);

  // session_ends.cpp
  void leg_ended(Link& link, const std::string& reason);
  void client_vanished();
  uint64_t last_wait_ms(uint64_t usual_ms) const;
  void tell_client(Buffer connection_close);
  void say_farewell();
  void answer_client_close();
  // The client's connection.close went up, and it waits for its answer. Until then the broker still says what
  // became of what the client said before.
  bool is_client_closing() const { return close_relayed_ && client_leg_ == Leg::open; }
  // Something has to go to the client whole before its connection ends.
  bool owes_content() const;
  void close_by_bellhop(uint16_t code, const std::string& text, uint32_t method);
  void broker_ended(const std::string& reason);
  void wait_for_client_end();
  void end_client_leg();
  void end_broker_leg();
  void close_broker_leg();
  bool is_settled() const;  // nothing the client sent is on its way, nothing is being parked
  // A content that the client has the first frames of will never be whole without the broker.
  bool is_half_out() const { return relay_ != nullptr && relay_->is_half_out(); }
  void note_unsettled();
  void hurry();
  void end_drained();
  bool has_more_of_client();
  void end_of_client_frames();
  void check_ends();
  void finish();

  Shared& shared_;
  const uint64_t id_;
  const std::shared_ptr<const config::Config> opened_with_;
  const config::TcpListen* tcp_;  // of opened_with_; null: a Unix socket
  const std::string peer_, refusal_;
  std::string broker_name_;
  std::function<void(uint64_t)> ended_;
  uv_loop_t loop_{};
  uv_timer_t timer_{};
  FileDescriptor fd_;  // until the client's link has it

  std::shared_ptr<Mailbox> mailbox_;  // other threads' way in; outlives the relay
  SessionState state_;
  SessionMemory memory_;
  std::unique_ptr<Link> client_, broker_;
  std::unique_ptr<Relay> relay_;  // from the end of the handshake on
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Handshake> handshake_;
  Stage stage_ = Stage::greeting;
  Leg client_leg_ = Leg::open, broker_leg_ = Leg::none;
  bool stalled_ = false;             // a client frame waits for a limit
  bool told_to_drain_ = false;       // the process ends
  bool abandoned_ = false;           // ending: the channels were dropped
  bool last_frames_done_ = false;    // the client is gone, and what it sent whole was handled
  bool client_wants_close_ = false;  // its connection.close waits for what it sent before
  bool close_relayed_ = false;
  Buffer farewell_;  // the connection.close that the client gets when it has its returns
  bool yield_posted_ = false;
  bool finished_ = false;
  std::atomic<bool> leaving_{false};
  std::atomic<size_t> unconfirmed_{0}, unacknowledged_{0};  // as of the last turn while draining
  std::string end_reason_;
  // When a wait is over whatever comes; 0: none. client: the handshake, then the leg's end. linger: a gone
  // client's publishes.
  // rest: nothing is unsettled, and the close is held back a little.
  uint64_t client_deadline_ms_ = 0, broker_deadline_ms_ = 0, linger_deadline_ms_ = 0, rest_deadline_ms_ = 0;
  uint64_t stop_within_ms_ = 0;        // 0: nobody told it to end now
  uint64_t farewell_deadline_ms_ = 0;  // returns are waited for until then
  uint64_t next_tick_ms_ = 0;
  Heartbeat client_heartbeat_, broker_heartbeat_;
  std::thread thread_;
};

}  // namespace bellhop
